// Feeds arbitrary JSON to the readers of config.json and generation_config.json. Anything but a clean Error, or a
// config that keeps the promises of its header, is a fault.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/draft_config.h"
#include "checkpoint/generation_config.h"
#include "checkpoint/target_config.h"

namespace {

using drafthorse::Json;

constexpr std::string_view kTarget = R"({"architectures":["Qwen3ForCausalLM"],"hidden_size":64,"num_hidden_layers":4,
    "vocab_size":320,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":32,"intermediate_size":160})";
constexpr std::string_view kDraft = R"({"architectures":["DFlash2DraftModel"],"hidden_size":64,"num_hidden_layers":2,
    "num_attention_heads":4,"num_key_value_heads":2,"head_dim":32,"intermediate_size":160,"rms_norm_eps":1e-6,"rope_theta":1e4,
    "dflash_config":{"block_size":8,"mask_token_id":3,"target_layer_ids":[1,2],"conv_kernel_size":2,"conv_group_size":16,
    "selector_rank":8,"selector_top_k":16}})";

void require(bool promise) {
  if (!promise) std::abort();
}

void check_rope(const drafthorse::RopeConfig& rope, int head_dim) {
  require(rope.theta > 0 && rope.factor > 0 && rope.attention_factor > 0);
  require(rope.rotary_dims >= 2 && rope.rotary_dims <= head_dim && rope.rotary_dims % 2 == 0);
}

template <typename Call>
void expect_clean(Call call) {
  try {
    call();
  } catch (const drafthorse::Error& error) {
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
}

void read_target(const Json& json) {
  const auto config = drafthorse::parse_target_config(json, "fuzz");
  require(config.num_attention_heads % config.num_key_value_heads == 0 && config.head_dim % 2 == 0);
  require(config.layer_types.size() == static_cast<std::size_t>(config.num_hidden_layers));
  require(config.sliding_windows.size() == config.layer_types.size());
  check_rope(config.rope, config.head_dim);
}

void read_draft(const Json& json) {
  const auto config = drafthorse::parse_draft_config(json, "fuzz");
  require(config.block_size >= 2 && config.taps() >= 1 && config.target_layer_ids.front() >= 0);
  require(config.layer_types.size() == static_cast<std::size_t>(config.num_hidden_layers));
  require(config.sliding_windows.size() == config.layer_types.size());
  check_rope(config.rope, config.head_dim);
  drafthorse::pairing_warnings(config, {4, 64, 320});
  drafthorse::check_pairing(config, {4, 64, 320}, "target");
  require(config.target_layer_ids.back() < 4 && config.mask_token_id >= 0 && config.mask_token_id < 320);
}

/// `patch` laid over a valid config, so that one strange key meets checks that come late.
Json over(std::string_view valid, const Json& patch) {
  Json config = drafthorse::parse_json(valid, "valid");
  if (patch.is_object()) config.merge_patch(patch);
  return config;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  expect_clean([&] {
    const Json json = drafthorse::parse_json(text, "fuzz");
    for (const Json& target : {json, over(kTarget, json)}) expect_clean([&] { read_target(target); });
    for (const Json& draft : {json, over(kDraft, json)}) expect_clean([&] { read_draft(draft); });
    const Json none = Json::object();
    expect_clean([&] { drafthorse::parse_generation_config(json, "fuzz", nullptr, ""); });
    expect_clean([&] { drafthorse::parse_generation_config(none, "none", &json, "fuzz"); });
  });
  return 0;
}

#include "checkpoint/rope_config.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>

namespace drafthorse {
namespace {

/// Keys that mean something, or that text-only inference may pass over (mrope_*), inside a rope object.
constexpr std::string_view kKnownKeys[] = {"rope_type",        "type",
                                           "rope_theta",       "partial_rotary_factor",
                                           "factor",           "low_freq_factor",
                                           "high_freq_factor", "beta_fast",
                                           "beta_slow",        "attention_factor",
                                           "mscale",           "mscale_all_dim",
                                           "truncate",         "original_max_position_embeddings",
                                           "mrope_section",    "mrope_interleaved"};

RopeKind parse_kind(const JsonObject& rope) {
  const std::string key = rope.has("rope_type") ? "rope_type" : "type";
  const std::string name = rope.string(key).value_or("default");
  if (name == "default") return RopeKind::kDefault;
  if (name == "linear") return RopeKind::kLinear;
  if (name == "llama3") return RopeKind::kLlama3;
  if (name == "yarn") return RopeKind::kYarn;
  rope.fail(key, "rope scaling of this kind is not supported; known are default, linear, llama3, yarn");
}

/// The `original_max_position_embeddings` of `rope`, >= 1.
std::int64_t original_positions(const ConfigKeys& rope, std::optional<std::int64_t> fallback) {
  return rope.positive("original_max_position_embeddings", std::numeric_limits<int>::max(), fallback);
}

/// Yarn's multiplier of q and k where the config does not state it.
/// Source: arXiv 2309.00071, section 3.4; mscale and mscale_all_dim as in DeepSeek-V2's configs.
double yarn_attention_factor(const JsonObject& rope, double factor) {
  const auto magnitude = [factor](double mscale) { return factor > 1 ? 0.1 * mscale * std::log(factor) + 1.0 : 1.0; };
  const double mscale = rope.number("mscale").value_or(0);
  const double all_dim = rope.number("mscale_all_dim").value_or(0);
  if (mscale == 0 || all_dim == 0) return magnitude(1.0);
  const double ratio = magnitude(mscale) / magnitude(all_dim);
  if (!std::isfinite(ratio) || ratio <= 0)
    rope.fail("mscale", "with mscale_all_dim gives no positive attention factor");
  return ratio;
}

void parse_scaling(const JsonObject& object, RopeConfig& rope) {
  for (const auto& item : object.json().items()) {
    const bool known = std::find(std::begin(kKnownKeys), std::end(kKnownKeys), item.key()) != std::end(kKnownKeys);
    if (!known && !item.value().is_null()) object.fail(item.key(), "unknown rope key; it may change the rotation");
  }
  if (rope.kind == RopeKind::kDefault) return;
  const ConfigKeys keys({object});
  rope.factor = keys.positive_number("factor");
  if (rope.kind == RopeKind::kLlama3) {
    if (rope.factor < 1) keys.fail("factor", "must be 1 or more for llama3 scaling");
    rope.low_freq_factor = keys.positive_number("low_freq_factor", rope.low_freq_factor);
    rope.high_freq_factor = keys.positive_number("high_freq_factor", rope.high_freq_factor);
    if (rope.high_freq_factor <= rope.low_freq_factor) {
      keys.fail("high_freq_factor", "must be above low_freq_factor = " + brief(Json(rope.low_freq_factor)));
    }
    rope.original_max_position = original_positions(keys, 8192);
  }
  if (rope.kind == RopeKind::kYarn) {
    if (rope.theta <= 1) object.fail("rope_theta", "must be above 1 for yarn scaling, is " + brief(Json(rope.theta)));
    rope.original_max_position = original_positions(keys, std::nullopt);
    rope.beta_fast = keys.positive_number("beta_fast", rope.beta_fast);
    rope.beta_slow = keys.positive_number("beta_slow", rope.beta_slow);
    if (rope.beta_fast <= rope.beta_slow) {
      keys.fail("beta_fast", "must be above beta_slow = " + brief(Json(rope.beta_slow)));
    }
    if (!keys.boolean("truncate").value_or(true)) keys.fail("truncate", "yarn without rounded bounds is not supported");
    rope.attention_factor = keys.has("attention_factor") ? keys.positive_number("attention_factor")
                                                         : yarn_attention_factor(object, rope.factor);
  }
}

}  // namespace

RopeConfig parse_rope(const ConfigKeys& config, int head_dim, const RopeDefaults& defaults) {
  std::vector<JsonObject> objects;
  const std::string spelling = config.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  const std::optional<JsonObject> scaling = config.object(spelling);
  if (scaling) objects.push_back(*scaling);
  objects.insert(objects.end(), config.objects().begin(), config.objects().end());
  const ConfigKeys keys(std::move(objects));

  RopeConfig rope;
  rope.theta = keys.positive_number("rope_theta", defaults.theta);
  const double part = keys.positive_number("partial_rotary_factor", defaults.partial_rotary_factor);
  if (part > 1) keys.fail("partial_rotary_factor", "must be at most 1");
  rope.rotary_dims = static_cast<int>(std::floor(head_dim * part));
  if (rope.rotary_dims < 2 || rope.rotary_dims % 2 != 0) {
    keys.fail("partial_rotary_factor", "rotates " + std::to_string(rope.rotary_dims) + " of " +
                                           std::to_string(head_dim) +
                                           " head dims; an even number of 2 or more is needed");
  }
  if (scaling) {
    rope.kind = parse_kind(*scaling);
    parse_scaling(*scaling, rope);
  }
  return rope;
}

}  // namespace drafthorse

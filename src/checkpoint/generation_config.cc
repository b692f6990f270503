#include "checkpoint/generation_config.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <string_view>

#include "base/json.h"
#include "checkpoint/folder.h"

namespace drafthorse {
namespace {

/// Keys that never change which tokens come out here: identity and cache settings, lengths (a request states its own),
/// settings of the publisher's own speculative decoding, and what this file reads elsewhere.
constexpr std::string_view kNeutral[] = {"eos_token_id",
                                         "bos_token_id",
                                         "pad_token_id",
                                         "decoder_start_token_id",
                                         "do_sample",
                                         "transformers_version",
                                         "_from_model_config",
                                         "_commit_hash",
                                         "use_cache",
                                         "cache_implementation",
                                         "cache_config",
                                         "return_legacy_cache",
                                         "output_attentions",
                                         "output_hidden_states",
                                         "output_scores",
                                         "output_logits",
                                         "return_dict_in_generate",
                                         "max_length",
                                         "max_new_tokens",
                                         "max_time",
                                         "is_assistant",
                                         "num_assistant_tokens",
                                         "num_assistant_tokens_schedule",
                                         "assistant_confidence_threshold",
                                         "assistant_early_exit",
                                         "assistant_lookbehind",
                                         "target_lookbehind",
                                         "prompt_lookup_num_tokens",
                                         "max_matching_ngram_size",
                                         "compile_config",
                                         "disable_compile",
                                         "trust_remote_code",
                                         "chat_format",
                                         "low_memory",
                                         "use_model_defaults",
                                         "prefill_chunk_size"};

/// Keys with a value, other than false or empty, that switches them off.
struct OffValue {
  std::string_view key;
  double off;
};
constexpr OffValue kOffValues[] = {{"num_beams", 1},
                                   {"num_beam_groups", 1},
                                   {"num_return_sequences", 1},
                                   {"typical_p", 1},
                                   {"encoder_repetition_penalty", 1},
                                   {"length_penalty", 1},
                                   {"repetition_penalty", 1},
                                   {"guidance_scale", 1},
                                   {"diversity_penalty", 0},
                                   {"epsilon_cutoff", 0},
                                   {"eta_cutoff", 0},
                                   {"no_repeat_ngram_size", 0},
                                   {"encoder_no_repeat_ngram_size", 0},
                                   {"penalty_alpha", 0}};
constexpr std::string_view kSamplingOnly[] = {"temperature", "top_k", "top_p", "min_p"};

template <typename List>
bool contains(const List& list, std::string_view key) {
  return std::find(std::begin(list), std::end(list), key) != std::end(list);
}

bool is_off(std::string_view key, const Json& value) {
  if (value.is_null() || value == false) return true;
  if ((value.is_array() || value.is_object()) && value.empty()) return true;
  if ((key == "min_length" || key == "min_new_tokens") && value == 0) return true;
  return std::any_of(std::begin(kOffValues), std::end(kOffValues), [&](const OffValue& entry) {
    return entry.key == key && value.is_number() && value.get<double>() == entry.off;
  });
}

int checked_id(const JsonObject& object, const std::string& key, std::int64_t id) {
  if (id < 0 || id > std::numeric_limits<int>::max()) object.fail(key, "a token id is a whole number from 0");
  return static_cast<int>(id);
}

void add_stop_ids(const JsonObject& object, std::set<int>& ids) {
  const std::string key = "eos_token_id";
  const Json* value = object.find(key);
  if (value == nullptr) return;
  if (value->is_array()) {
    const auto listed = object.integers(key);
    for (const std::int64_t id : *listed) ids.insert(checked_id(object, key, id));
  } else {
    ids.insert(checked_id(object, key, *object.integer(key)));
  }
}

double in_range(const JsonObject& object, const std::string& key, double value, double low, double high) {
  if (value < low || value > high) {
    object.fail(key, "must be from " + brief(Json(low)) + " to " + brief(Json(high)));
  }
  return value;
}

SamplingDefaults parse_sampling(const JsonObject& object) {
  SamplingDefaults defaults;
  if (const auto value = object.number("temperature"))
    defaults.temperature = in_range(object, "temperature", *value, 0, 1e6);
  if (const auto value = object.integer("top_k")) {
    if (*value < 0) object.fail("top_k", "must be 0 (off) or more");
    defaults.top_k = value;
  }
  if (const auto value = object.number("top_p")) {
    if (*value <= 0) object.fail("top_p", "must be above 0");
    defaults.top_p = in_range(object, "top_p", *value, 0, 1);
  }
  if (const auto value = object.number("min_p")) defaults.min_p = in_range(object, "min_p", *value, 0, 1);
  if (const auto value = object.number("repetition_penalty")) {
    if (*value <= 0) object.fail("repetition_penalty", "must be above 0");
    defaults.repetition_penalty = value;
  }
  return defaults;
}

std::vector<std::string> unsupported_keys(const JsonObject& object, bool do_sample) {
  std::vector<std::string> keys;
  for (const auto& item : object.json().items()) {
    const std::string& key = item.key();
    const bool followed = contains(kSamplingOnly, key) || (key == "repetition_penalty" && do_sample);
    if (!followed && !contains(kNeutral, key) && !is_off(key, item.value())) keys.push_back(key);
  }
  return keys;
}

}  // namespace

GenerationConfig parse_generation_config(const Json& config, const std::string& config_source, const Json* generation,
                                         const std::string& generation_source) {
  std::vector<JsonObject> objects;  // later ones know less about generation
  if (generation != nullptr) objects.emplace_back(*generation, generation_source);
  const JsonObject top(config, config_source);
  if (const auto text = top.object("text_config")) objects.push_back(*text);
  objects.push_back(top);

  GenerationConfig result;
  std::set<int> ids;
  for (const JsonObject& object : objects) {
    add_stop_ids(object, ids);
    if (const auto bos = object.integer("bos_token_id"); bos && !result.bos_id) {
      result.bos_id = checked_id(object, "bos_token_id", *bos);
    }
  }
  result.stop_ids.assign(ids.begin(), ids.end());
  if (generation != nullptr) {
    const JsonObject& object = objects.front();
    result.do_sample = object.boolean("do_sample").value_or(false);
    if (result.do_sample) result.sampling = parse_sampling(object);
    result.unsupported = unsupported_keys(object, result.do_sample);
  }
  return result;
}

GenerationConfig read_generation_config(const std::string& folder) {
  const ModelFolder files = open_model_folder(folder);
  const Json config = read_json_file(files.config);
  if (!files.generation_config) return parse_generation_config(config, files.config, nullptr, "");
  const Json generation = read_json_file(*files.generation_config);
  return parse_generation_config(config, files.config, &generation, *files.generation_config);
}

}  // namespace drafthorse

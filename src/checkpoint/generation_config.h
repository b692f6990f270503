#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace drafthorse {

/// What the publisher of a model recommends for sampling. Only keys that the files state.
struct SamplingDefaults {
  std::optional<double> temperature;         ///< >= 0
  std::optional<std::int64_t> top_k;         ///< >= 0; 0: off
  std::optional<double> top_p;               ///< (0, 1]
  std::optional<double> min_p;               ///< [0, 1]
  std::optional<double> repetition_penalty;  ///< > 0
};

/// Where generation starts and stops, and the publisher's defaults.
struct GenerationConfig {
  /// Every id declared as an end in config.json (text_config too) and generation_config.json: ascending, without
  /// repetition. tokenizer_config.json names its end token as text; the caller adds that id.
  std::vector<int> stop_ids;
  std::optional<int> bos_id;
  bool do_sample = false;
  SamplingDefaults sampling;  ///< empty unless do_sample
  /// Keys of generation_config.json that would change the output and are not followed, in file order; worth a warning
  /// naming them.
  std::vector<std::string> unsupported;
};

/// `config` is the parsed config.json, `generation` the parsed generation_config.json or nullptr. Throws Error naming
/// file, key and value for ids that are not whole numbers >= 0, or defaults out of their range.
GenerationConfig parse_generation_config(const Json& config, const std::string& config_source, const Json* generation,
                                         const std::string& generation_source);
/// Reads both files of `folder`; generation_config.json may be absent.
GenerationConfig read_generation_config(const std::string& folder);

}  // namespace drafthorse

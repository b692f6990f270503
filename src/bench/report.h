#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/passes.h"
#include "engine/loaded_model.h"

namespace drafthorse {

/// Decoding one text with and without the draft.
struct DecodeReport {
  double plain_tokens_per_second = 0.0;        ///< median of kDecodeRuns
  double speculative_tokens_per_second = 0.0;  ///< the same; 0 without a draft
  double mean_accepted = 0.0;
  std::int64_t depth = 0;
  double speed_up() const;
};
inline constexpr int kDecodeRuns = 3;

/// What one model does on one machine.
struct BenchReport {
  std::string isa;
  int threads = 0;
  std::string weights;
  std::uint64_t weight_bytes = 0;  ///< that a pass reads: packed weights, scales and the head
  std::uint64_t kv_bytes = 0;      ///< that a pass reads: keys and values of kBenchContext positions
  PassReport passes;
  std::map<std::int64_t, std::map<std::string, double>>
      operators;                       ///< by rows; see measure_operators. Empty for models from files
  std::optional<DecodeReport> decode;  ///< nothing for synthetic models

  /// The least time a 1-row pass can take: its bytes over the measured bandwidth.
  double bound_milliseconds() const;
};

/// A model of random weights in a published shape, "0.6b" or "4b". Throws Error for other names, or when it does not
/// fit the memory.
BenchReport bench_shape(const std::string& shape, const LoadOptions& options, double seconds);
/// A model from files, and its draft if it has one, continuing `prompt` by `tokens` tokens.
BenchReport bench_model(LoadedModel& model, const LoadOptions& options, const std::vector<std::int32_t>& prompt,
                        std::int64_t tokens, double seconds);

}  // namespace drafthorse

#include "bench/operators.h"

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "bench/passes.h"
#include "bench/stopwatch.h"
#include "cache/kv_cache.h"
#include "ops/attention.h"
#include "ops/linear.h"
#include "ops/unembed.h"
#include "quant/packed_matrix.h"
#include "tensor/arena.h"

namespace drafthorse {
namespace {

constexpr std::size_t kColdBytes = std::size_t{128} << 20;  // more than caches hold
constexpr int kRepeats = 5;

float random_value(std::uint64_t i) { return static_cast<float>(splitmix64(5, i) >> 40) * 0x1p-24f - 0.5f; }

/// A [rows, cols] matrix of random values.
struct Values {
  Values(std::int64_t rows, std::int64_t cols)
      : data(static_cast<std::size_t>(rows * cols)), view{nullptr, rows, cols, cols} {
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = random_value(i);
    view.data = data.data();
  }
  std::vector<float> data;
  Rows view;
};

/// Copies of one matrix, enough to be cold; every call uses the next.
class ColdMatrices {
 public:
  ColdMatrices(WeightType type, std::int64_t outputs, std::int64_t inputs, std::int64_t copies, ExecContext& exec)
      : exec_(exec) {
    const std::size_t bytes =
        packed_matrix(type, outputs, inputs).tile_bytes() * static_cast<std::size_t>((outputs + 31) / 32);
    copies = std::clamp<std::int64_t>(static_cast<std::int64_t>(kColdBytes / bytes) + 1, 1, copies);
    std::vector<std::uint16_t> values(static_cast<std::size_t>(outputs * inputs));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = i < 65521 ? float_to_bf16(random_value(i)) : values[i - 65521];
    const StoredMatrix stored{ElementType::kBF16, outputs, inputs, std::as_bytes(std::span(values))};
    for (std::int64_t i = 0; i < copies; ++i) {
      PackedMatrix& matrix = matrices_.emplace_back(packed_matrix(type, outputs, inputs));
      exec.pool.parallel_for(matrix.tiles(), [&](std::int64_t tile, int) {
        pack_tiles({&stored, 1}, "random", tile, tile + 1, matrix);
      });
    }
  }

  const PackedMatrix& next() { return matrices_[static_cast<std::size_t>(next_++) % matrices_.size()]; }

  /// Milliseconds of one product with `rows` rows, packing included.
  double time_linear(std::int64_t rows) {
    const PackedMatrix& first = matrices_.front();
    const Values x(rows, first.cols);
    const Values y(rows, first.rows);
    AlignedBuffer packed(packed_rows_bytes(first.type, rows, first.cols, exec_));
    return time([&](const PackedMatrix& matrix) {
      linear(matrix, pack_rows(x.view, matrix.type, packed.data(), exec_), y.view, exec_);
    });
  }
  double time_head(std::int64_t rows) {
    const PackedMatrix& first = matrices_.front();
    const Values x(rows, first.cols);
    AlignedBuffer packed(packed_rows_bytes(first.type, rows, first.cols, exec_));
    std::vector<std::int32_t> argmax(static_cast<std::size_t>(rows));
    Arena arena;
    UnembedTask task;
    task.argmax = argmax.data();
    return time([&](const PackedMatrix& matrix) {
      unembed(matrix, pack_rows(x.view, matrix.type, packed.data(), exec_), task, arena, exec_);
      arena.reset();
    });
  }

 private:
  template <typename Call>
  double time(Call&& call) {
    std::vector<double> times;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      const Stopwatch watch;
      for (std::size_t i = 0; i < matrices_.size(); ++i) call(next());
      times.push_back(1e3 * watch.seconds() / static_cast<double>(matrices_.size()));
    }
    return median(times);
  }

  ExecContext& exec_;
  std::vector<PackedMatrix> matrices_;
  std::int64_t next_ = 0;
};

/// Milliseconds of one layer's attention, `layers` layers with caches of their own in turn.
double time_attention(const TargetConfig& config, ElementType kv_type, std::int64_t rows, std::int64_t layers,
                      ExecContext& exec) {
  AttentionShape shape;
  shape.layout = {.type = kv_type, .kv_heads = config.num_key_value_heads, .head_dim = config.head_dim};
  shape.heads = config.num_attention_heads;
  shape.scale = 0.1f;
  const std::int64_t positions = kBenchContext + rows;
  PagePool pool(shape.layout);
  std::vector<std::unique_ptr<KvCache>> caches;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    auto& cache = caches.emplace_back(std::make_unique<KvCache>(pool, positions));
    std::byte* const* pages = cache->reserve(positions);
    const std::int64_t page_count = (positions + shape.layout.page_positions - 1) / shape.layout.page_positions;
    for (std::int64_t page = 0; page < page_count; ++page)
      std::fill_n(pages[page], shape.layout.page_bytes(), std::byte{0x3c});
    cache->advance(positions);
  }
  const Values q(rows, shape.heads * shape.layout.head_dim);
  const Values out(rows, shape.heads * shape.layout.head_dim);
  std::vector<std::int64_t> begin(static_cast<std::size_t>(rows), 0);
  std::vector<std::int64_t> end;
  for (std::int64_t row = 0; row < rows; ++row) end.push_back(kBenchContext + row + 1);
  const QueryRun run{0, rows};
  Arena arena;
  const AttentionPlan plan(shape, {&run, 1}, begin.data(), end.data(), arena, exec);
  std::vector<double> times;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const Stopwatch watch;
    for (const auto& cache : caches) {
      const KvPages pages = cache->pages();
      plan.run(q.view, &pages, out.view, exec);
    }
    times.push_back(1e3 * watch.seconds() / static_cast<double>(layers));
  }
  return median(times);
}

}  // namespace

std::map<std::string, double> measure_operators(const TargetConfig& config, WeightType weights, ElementType kv_type,
                                                std::int64_t rows, ExecContext& exec) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t q = std::int64_t{config.num_attention_heads} * config.head_dim;
  const std::int64_t kv = std::int64_t{config.num_key_value_heads} * config.head_dim;
  const std::int64_t layers = config.num_hidden_layers;
  const auto layer_linear = [&](std::int64_t outputs, std::int64_t inputs) {
    return static_cast<double>(layers) * ColdMatrices(weights, outputs, inputs, layers, exec).time_linear(rows);
  };
  std::map<std::string, double> milliseconds;
  milliseconds["qkv"] = layer_linear(q + 2 * kv, hidden);
  milliseconds["o"] = layer_linear(hidden, q);
  milliseconds["gate_up"] = layer_linear(2 * std::int64_t{config.intermediate_size}, hidden);
  milliseconds["down"] = layer_linear(hidden, config.intermediate_size);
  milliseconds["head"] = ColdMatrices(weights, config.vocab_size, hidden, 1, exec).time_head(rows);
  milliseconds["attention"] = static_cast<double>(layers) * time_attention(config, kv_type, rows, layers, exec);
  return milliseconds;
}

}  // namespace drafthorse

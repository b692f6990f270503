#include "engine/score.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>

#include "base/error.h"
#include "engine/generate.h"
#include "tensor/aligned_buffer.h"

namespace drafthorse {
namespace {

constexpr std::int64_t kChunk = 512;     // rows of a forward pass
constexpr std::int64_t kLogitRows = 16;  // rows of logits held at a time: a large vocabulary is 600 kB a row

Score::Top best(const float* logits, std::int64_t width, std::int64_t count, std::vector<std::int32_t>& order) {
  order.resize(static_cast<std::size_t>(width));
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, width));
  std::partial_sort(order.begin(), end, order.end(), [&](std::int32_t a, std::int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  Score::Top top;
  top.ids.assign(order.begin(), end);
  for (const std::int32_t id : top.ids) top.logits.push_back(logits[id]);
  return top;
}

}  // namespace

double Score::nll_mean() const {
  return nll.empty() ? 0.0 : std::accumulate(nll.begin(), nll.end(), 0.0) / static_cast<double>(nll.size());
}

void check_scorable(std::span<const std::int32_t> ids, std::int64_t vocab_width, std::int64_t context) {
  if (ids.empty()) throw Error("score: there are no ids");
  if (std::ssize(ids) > context) {
    throw Error("score: " + std::to_string(ids.size()) + " ids do not fit the context of " + std::to_string(context) +
                " positions: shorten the text, or raise --context if the model allows more");
  }
  check_ids(ids, vocab_width, "score");
}

Score score_ids(Model& target, ExecContext& exec, std::span<const std::int32_t> ids, std::int64_t top) {
  const ModelFacts& facts = target.facts();
  check_scorable(ids, facts.vocab_width, facts.context);
  const std::int64_t length = std::ssize(ids);
  Score score;
  const std::unique_ptr<CacheSet> caches = target.make_caches();
  AlignedBuffer buffer(static_cast<std::size_t>(kLogitRows * facts.vocab_width) * sizeof(float));
  std::vector<std::int32_t> order;
  for (std::int64_t at = 0; at < length; at += kChunk) {
    const std::int64_t rows = std::min(kChunk, length - at);
    const SequenceRows run{ids.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(rows)), caches.get()};
    const ForwardResult forward = target.forward({.sequences = {&run, 1}, .taps = {}});
    for (std::int64_t row = 0; row < rows; row += kLogitRows) {
      const std::int64_t count = std::min(kLogitRows, rows - row);
      const Rows logits{buffer.as<float>(), count, facts.vocab_width, facts.vocab_width};
      target.unembed(forward.hidden.slice(row, row + count), {.logits = logits});
      for (std::int64_t r = 0; r < count; ++r) {
        const std::int64_t place = at + row + r;
        if (place + 1 < length) {
          const float log_sum = exec.kernels.log_sum_exp(logits.row(r), facts.vocab_width);
          score.nll.push_back(static_cast<double>(log_sum) -
                              static_cast<double>(logits.row(r)[ids[static_cast<std::size_t>(place + 1)]]));
        }
        if (top > 0) score.top.push_back(best(logits.row(r), facts.vocab_width, top, order));
      }
    }
  }
  return score;
}

}  // namespace drafthorse

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "kernels/kernel_table.h"
#include "ops/machine.h"
#include "quant/weight_type.h"
#include "support/loaded_network.h"
#include "support/temp_folder.h"
#include "support/tiny_checkpoint.h"

namespace drafthorse {
namespace {

constexpr int kVocab = 96;

std::vector<std::int32_t> random_ids(std::int64_t count, std::uint64_t seed) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<std::int32_t>(splitmix64(seed, static_cast<std::uint64_t>(i)) % kVocab));
  }
  return ids;
}

/// Hidden rows, taps and logits of a text that follows what the caches hold, sent in pieces.
struct TextCopy {
  RowCopy hidden;
  RowCopy taps;
  RowCopy logits;
  bool operator==(const TextCopy&) const = default;
};
TextCopy run_text(Model& model, CacheSet& caches, std::span<const std::int32_t> ids, std::size_t piece) {
  const std::vector<std::int64_t> taps = {0, 1};
  TextCopy copy;
  for (std::size_t done = 0; done < ids.size(); done += piece) {
    const auto part = ids.subspan(done, std::min(piece, ids.size() - done));
    const PassCopy pass = forward_one(model, caches, part, taps);
    copy.hidden.append(pass.hidden.view());
    copy.taps.append(pass.taps.view());
    copy.logits.append(logits_of(model, pass.hidden.view(), kVocab).view());
  }
  return copy;
}
TextCopy run_text(Model& model, std::span<const std::int32_t> ids, std::size_t piece) {
  const auto caches = model.make_caches();
  return run_text(model, *caches, ids, piece);
}

/// Target checkpoints of both families on disk: Qwen3 with a full and a sliding layer, Qwen2 with three query heads per
/// key head.
class Checkpoints {
 public:
  Checkpoints() {
    tiny_target({.layers = 2, .head_dim = 16, .vocab = kVocab, .windows = {0, 40}}).write(qwen3_.path());
    tiny_target({.qwen2 = true,
                 .layers = 2,
                 .hidden = 48,
                 .heads = 3,
                 .kv_heads = 1,
                 .intermediate = 40,
                 .vocab = kVocab,
                 .tied = false})
        .write(qwen2_.path());
  }
  std::vector<std::string> folders() const { return {qwen3_.path(), qwen2_.path()}; }
  std::string qwen3() const { return qwen3_.path(); }

 private:
  TempFolder qwen3_;
  TempFolder qwen2_;
};

struct Setting {
  std::string isa;
  WeightType weights;
  ElementType kv;
};

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const KernelTable* table : runnable_kernel_tables()) {
    for (const WeightType type : {WeightType::kF32, WeightType::kF16, WeightType::kBF16, WeightType::kQ8_0}) {
      for (const ElementType kv : {ElementType::kBF16, ElementType::kF32}) all.push_back({table->name, type, kv});
    }
  }
  return all;
}

std::string setting_name(const testing::TestParamInfo<Setting>& info) {
  std::string name = info.param.isa + "_" + std::string(weight_name(info.param.weights)) + "_" +
                     (info.param.kv == ElementType::kF32 ? "kvf32" : "kvbf16");
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

ModelOptions options_of(const Setting& setting, std::int64_t page_positions = 64) {
  return {.weights = setting.weights,
          .kv_type = setting.kv,
          .context = 0,
          .page_positions = page_positions,
          .progress = {}};
}

class BatchInvariance : public testing::TestWithParam<Setting> {
 protected:
  static const Checkpoints& checkpoints() {
    static const Checkpoints made;
    return made;
  }
};

TEST_P(BatchInvariance, ChunksOfAnySizeGiveTheBitsOfOnePass) {
  Machine machine(1, GetParam().isa);
  for (const std::string& folder : checkpoints().folders()) {
    LoadedTarget target(folder, options_of(GetParam()), machine.exec());
    const auto ids = random_ids(520, 11);
    const TextCopy whole = run_text(*target.model, ids, ids.size());
    for (const std::size_t piece : {1, 7, 32, 512}) {
      EXPECT_TRUE(run_text(*target.model, ids, piece) == whole)
          << target.config.architecture << ", chunks of " << piece;
    }
  }
}

TEST_P(BatchInvariance, APassOfAFewRowsGivesTheBitsOfOnePassAtEveryCachedLength) {
  Machine machine(1, GetParam().isa);
  LoadedTarget target(checkpoints().qwen3(), options_of(GetParam()), machine.exec());
  const auto ids = random_ids(660, 12);
  const TextCopy whole = run_text(*target.model, ids, ids.size());
  const auto caches = target.model->make_caches();
  constexpr std::size_t kFirst = 448;  // 448 .. 575: every length modulo 128, across the edge of an attention chunk
  run_text(*target.model, *caches, std::span(ids).first(kFirst), kFirst);
  for (std::size_t length = kFirst; length < kFirst + 128; ++length) {
    const std::size_t rows = 1 + length % 16;
    CacheTransaction guess(*caches, static_cast<std::int64_t>(rows));
    const TextCopy few = run_text(*target.model, *caches, std::span(ids).subspan(length, rows), rows);
    guess.commit(1);
    const ConstRows expected =
        whole.logits.view().slice(static_cast<std::int64_t>(length), static_cast<std::int64_t>(length + rows));
    ASSERT_TRUE(few.logits == RowCopy(expected)) << rows << " rows after " << length;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, BatchInvariance, testing::ValuesIn(settings()), setting_name);

class InvarianceOfTheMachine : public testing::TestWithParam<ElementType> {
 protected:
  InvarianceOfTheMachine() : ids_(random_ids(600, 13)) {}

  /// A text's results: prefill in chunks, then passes of 8 and of 1 rows.
  TextCopy run(int threads, std::int64_t page_positions) {
    Machine machine(threads);
    const Setting setting{machine.isa(), WeightType::kBF16, GetParam()};
    LoadedTarget target(checkpoints_.qwen3(), options_of(setting, page_positions), machine.exec());
    const auto caches = target.model->make_caches();
    TextCopy copy = run_text(*target.model, *caches, std::span(ids_).first(560), 200);
    for (const std::size_t piece : {8, 1}) {
      const TextCopy more = run_text(*target.model, *caches,
                                     std::span(ids_).subspan(static_cast<std::size_t>(caches->offset()), 16), piece);
      copy.logits.append(more.logits.view());
    }
    return copy;
  }

  Checkpoints checkpoints_;
  std::vector<std::int32_t> ids_;
};

TEST_P(InvarianceOfTheMachine, PageSizesGiveTheSameBits) {
  const TextCopy first = run(1, 64);
  EXPECT_TRUE(run(1, 32) == first);
  EXPECT_TRUE(run(1, 128) == first);
}

TEST_P(InvarianceOfTheMachine, ThreadsGiveTheSameBits) {
  const TextCopy first = run(1, 64);
  for (const int threads : {2, 3, 7}) EXPECT_TRUE(run(threads, 64) == first) << threads << " threads";
}

TEST_P(InvarianceOfTheMachine, ARaggedBatchGivesEachSequenceItsOwnBits) {
  Machine machine(2);
  const Setting setting{machine.isa(), WeightType::kBF16, GetParam()};
  LoadedTarget target(checkpoints_.qwen3(), options_of(setting), machine.exec());
  struct Part {
    std::vector<std::int32_t> ids;
    std::size_t held;
  };
  const std::vector<Part> parts = {
      {random_ids(5 + 3, 21), 5}, {random_ids(530 + 17, 22), 530}, {random_ids(63 + 1, 23), 63}};
  std::vector<std::unique_ptr<CacheSet>> caches;
  std::vector<SequenceRows> sequences;
  RowCopy expected_hidden;
  RowCopy expected_taps;
  const std::vector<std::int64_t> taps = {0, 1};
  for (const Part& part : parts) {
    const auto held = std::span(part.ids).first(part.held);
    const auto fresh = std::span(part.ids).subspan(part.held);
    for (int copy = 0; copy < 2; ++copy) {
      auto own = target.model->make_caches();
      run_text(*target.model, *own, held, held.size());
      if (copy == 0) {
        const PassCopy solo = forward_one(*target.model, *own, fresh, taps);
        expected_hidden.append(solo.hidden.view());
        expected_taps.append(solo.taps.view());
      } else {
        caches.push_back(std::move(own));
        sequences.push_back({fresh, caches.back().get()});
      }
    }
  }
  const ForwardResult together = target.model->forward({sequences, taps});
  EXPECT_TRUE(RowCopy(together.hidden) == expected_hidden);
  EXPECT_TRUE(RowCopy(together.taps) == expected_taps);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(caches[i]->offset(), static_cast<std::int64_t>(parts[i].ids.size()));
  }
}

TEST_P(InvarianceOfTheMachine, TapsChangeNoBit) {
  Machine machine(2);
  const Setting setting{machine.isa(), WeightType::kBF16, GetParam()};
  LoadedTarget target(checkpoints_.qwen3(), options_of(setting), machine.exec());
  const auto ids = std::span(ids_).first(50);
  const std::vector<std::int64_t> all = {0, 1};
  const std::vector<std::int64_t> one = {1};
  const auto plain = target.model->make_caches();
  const auto tapped = target.model->make_caches();
  const auto partly = target.model->make_caches();
  const PassCopy without = forward_one(*target.model, *plain, ids);
  const PassCopy with = forward_one(*target.model, *tapped, ids, all);
  const PassCopy with_one = forward_one(*target.model, *partly, ids, one);
  EXPECT_EQ(without.taps.rows, 0);
  EXPECT_TRUE(without.hidden == with.hidden);
  EXPECT_TRUE(without.hidden == with_one.hidden);
  EXPECT_FALSE(with.hidden.row(0)[0] == with.taps.row(0)[0]);
}

INSTANTIATE_TEST_SUITE_P(Caches, InvarianceOfTheMachine, testing::Values(ElementType::kBF16, ElementType::kF32),
                         [](const testing::TestParamInfo<ElementType>& type) {
                           return type.param == ElementType::kF32 ? "kvf32" : "kvbf16";
                         });

}  // namespace
}  // namespace drafthorse

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "ops/machine.h"
#include "support/allocation_count.h"
#include "support/loaded_network.h"
#include "support/temp_folder.h"
#include "support/tiny_checkpoint.h"
#include "tensor/aligned_buffer.h"

namespace drafthorse {
namespace {

TEST(WarmPass, TheCounterSeesEveryWayToAllocate) {
  const std::int64_t before = allocation_count();
  const auto number = std::make_unique<int>(1);
  EXPECT_GE(allocation_count(), before + 1);
  const std::int64_t small = allocation_count();
  const AlignedBuffer buffer(100);
  EXPECT_GE(allocation_count(), small + 1);
  const std::int64_t large = allocation_count();
  const AlignedBuffer mapped(4 << 20);
  EXPECT_GE(allocation_count(), large + 1);
}

TEST(WarmPass, TargetAndDraftAllocateNothing) {
  Machine machine(2);
  const TempFolder target_folder, draft_folder;
  tiny_target({.windows = {0, 40, 0}}).write(target_folder.path());
  tiny_draft({.layers = 3, .windows = {0, 16, 0}}).write(draft_folder.path());
  LoadedTarget target(target_folder.path(), exact_options(), machine.exec());
  LoadedDraft draft(draft_folder.path(), *target.model, exact_options(), machine.exec());
  const auto caches = target.model->make_caches();
  const auto draft_caches = draft.model->make_caches();
  const std::vector<std::int32_t> prompt(300, 5);
  const std::vector<std::int32_t> block(8, 319);
  std::vector<std::int32_t> argmax(8);
  std::vector<std::uint64_t> hash(8);

  // A round of speculative decoding that keeps `kept` rows.
  const auto round = [&](std::int64_t kept) {
    const ConstRows drafted = draft.model->forward({}, block, *draft_caches);
    draft.model->unembed(drafted.slice(1, 8), {.logits = {}, .argmax = argmax.data()});
    CacheTransaction guess(*caches, 8);
    const SequenceRows sequence{block, caches.get()};
    const ForwardResult pass = target.model->forward({{&sequence, 1}, draft.model->facts().taps});
    target.model->unembed(pass.hidden, {.logits = {}, .argmax = argmax.data(), .hash = hash.data()});
    guess.commit(kept);
    draft.model->forward(pass.taps.slice(0, kept), {}, *draft_caches);
  };
  const SequenceRows sequence{prompt, caches.get()};
  draft.model->forward(target.model->forward({{&sequence, 1}, draft.model->facts().taps}).taps, {}, *draft_caches);
  for (int i = 0; i < 6; ++i) round(8);
  const std::int64_t before = allocation_count();
  for (int i = 0; i < 60; ++i) round(1 + i % 8);
  EXPECT_EQ(allocation_count(), before);
  EXPECT_GT(caches->offset(), 512);  // new pages and a new attention chunk were met on the way
}

}  // namespace
}  // namespace drafthorse

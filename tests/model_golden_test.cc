#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ops/machine.h"
#include "support/loaded_network.h"
#include "support/reference_values.h"
#include "support/shared_data.h"
#include "support/test_machine.h"

namespace drafthorse {
namespace {

constexpr double kLogitBound = 2e-4;
constexpr double kHiddenBound = 5e-4;
constexpr double kDraftBound = 2e-4;

std::string test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// Column block t of side-by-side rows.
RowCopy column_block(const RowCopy& rows, std::int64_t t, std::int64_t width) {
  RowCopy block;
  for (std::int64_t r = 0; r < rows.rows; ++r) block.append({rows.view().row(r) + t * width, 1, width, width});
  return block;
}

class GoldenTarget : public testing::TestWithParam<const char*> {};

TEST_P(GoldenTarget, HiddenRowsTapsAndLogitsAreThoseOfTransformers) {
  DRAFTHORSE_NEEDS_SHARED(folder, std::string("golden/targets/") + GetParam());
  LoadedTarget target(folder, exact_options(), test_exec());
  const ReferenceValues expect(folder + "/expect.safetensors");
  const auto ids = expect.ints("ids");
  const auto caches = target.model->make_caches();
  const std::vector<std::int64_t> taps = {0, 1, 2, 3};
  const PassCopy pass = forward_one(*target.model, *caches, ids, taps);
  for (const std::int64_t tap : taps) {
    const std::string name = "hidden." + std::to_string(tap);
    expect_close(column_block(pass.taps, tap, target.model->facts().hidden_width), expect.rows(name), kHiddenBound,
                 name);
  }
  expect_close(pass.hidden, expect.rows("final"), kHiddenBound, "final");
  expect_close(logits_of(*target.model, pass.hidden.view(), target.model->facts().vocab_width), expect.rows("logits"),
               kLogitBound, "logits");
}

TEST_P(GoldenTarget, GreedyTextIsThatOfTransformers) {
  DRAFTHORSE_NEEDS_SHARED(folder, std::string("golden/targets/") + GetParam());
  LoadedTarget target(folder, exact_options(), test_exec());
  const ReferenceValues expect(folder + "/expect.safetensors");
  const auto caches = target.model->make_caches();
  auto next = expect.ints("ids");
  std::vector<std::int32_t> text;
  for (std::size_t i = 0; i < expect.ints("greedy").size(); ++i) {
    const SequenceRows sequence{next, caches.get()};
    const ConstRows hidden = target.model->forward({{&sequence, 1}, {}}).hidden;
    std::int32_t token = -1;
    target.model->unembed(hidden.slice(hidden.rows - 1, hidden.rows), {.logits = {}, .argmax = &token});
    text.push_back(token);
    next = {token};
  }
  EXPECT_EQ(text, expect.ints("greedy"));
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenTarget, testing::Values("qwen2", "qwen2-yarn-untied", "qwen3", "qwen3-untied"),
                         test_name);

class GoldenDraft : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string folder = shared_path("golden/drafts");
    if (folder.empty()) GTEST_SKIP() << "reference data absent: shared/golden/drafts";
    const std::string draft_folder = folder + "/" + GetParam();
    target_ = std::make_unique<LoadedTarget>(folder + "/target", exact_options(), test_exec());
    draft_ = std::make_unique<LoadedDraft>(draft_folder, *target_->model, exact_options(), test_exec());
    expect_ = std::make_unique<ReferenceValues>(draft_folder + "/expect.safetensors");
  }

  DraftModel& draft() { return *draft_->model; }
  std::int64_t vocab() const { return target_->model->facts().vocab_width; }

  std::unique_ptr<LoadedTarget> target_;
  std::unique_ptr<LoadedDraft> draft_;
  std::unique_ptr<ReferenceValues> expect_;
};

TEST_P(GoldenDraft, FeaturesAreTheTargetsTaps) {
  const auto caches = target_->model->make_caches();
  const PassCopy pass = forward_one(*target_->model, *caches, expect_->ints("prompt"), draft().facts().taps);
  expect_close(pass.taps, expect_->rows("features"), kHiddenBound, "features");
}

TEST_P(GoldenDraft, ABlockIsThatOfTheAuthors) {
  const auto caches = draft().make_caches();
  const RowCopy hidden(draft().forward(expect_->rows("features").view(), expect_->ints("block.ids"), *caches));
  expect_close(hidden, expect_->rows("block.hidden"), kDraftBound, "block.hidden");
  const ConstRows drafted = hidden.view().slice(1, hidden.rows);
  expect_close(logits_of(draft(), drafted, vocab()), expect_->rows("block.logits"), kDraftBound, "block.logits");
  std::vector<std::int32_t> path(static_cast<std::size_t>(drafted.rows));
  draft().unembed(drafted, {.logits = {}, .argmax = path.data()});
  EXPECT_EQ(path, expect_->ints("path"));
}

TEST_P(GoldenDraft, AShortBlockAfterALongOneIsThatOfTheAuthors) {
  const auto caches = draft().make_caches();
  const auto ids = expect_->ints("block.ids");
  draft().forward(expect_->rows("features").view(), ids, *caches);
  const RowCopy hidden(draft().forward({}, std::span(ids).first(4), *caches));
  expect_close(hidden, expect_->rows("block.short"), kDraftBound, "block.short");
}

TEST_P(GoldenDraft, ContextInAnyPiecesGivesTheSameBits) {
  const RowCopy features = expect_->rows("features");
  const auto ids = expect_->ints("block.ids");
  const auto whole = draft().make_caches();
  const RowCopy once(draft().forward(features.view(), ids, *whole));
  for (const std::int64_t piece : {1, 3, 8, 28}) {
    const auto caches = draft().make_caches();
    RowCopy hidden;
    for (std::int64_t done = 0; done < features.rows; done += piece) {
      const std::int64_t end = std::min(features.rows, done + piece);
      hidden = RowCopy(draft().forward(features.view().slice(done, end), ids,
                                       *caches));  // a block after every piece leaves nothing behind
      EXPECT_EQ(caches->offset(), end);
    }
    EXPECT_EQ(hidden, once) << "pieces of " << piece;
  }
}

INSTANTIATE_TEST_SUITE_P(Drafts, GoldenDraft, testing::Values("dflash", "dflash-sliding"), test_name);

}  // namespace
}  // namespace drafthorse

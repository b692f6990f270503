#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/json.h"
#include "engine/draft_head_options.h"
#include "engine/loaded_model.h"
#include "support/error_text.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"
#include "support/test_machine.h"
#include "support/tiny_checkpoint.h"

namespace drafthorse {
namespace {

class SilentSink : public TokenSink {
 public:
  void emit(std::span<const std::int32_t>, std::string_view) override {}
};

/// The demonstration pair with a draft head of its own.
GenerateResult generate(const char* vocab, const char* head, const SamplingParams& sampling, bool draft = true) {
  const TargetFiles target = open_target(project_path("models/demo/target"));
  const DraftFiles files = open_draft(project_path("models/demo/dflash"));
  LoadOptions options;
  options.draft_head = DraftHeadOptions::parse(vocab, head);
  LoadedModel model(target, &files, options, test_exec());
  GenerateRequest request{.prompt = target.tokenizer->encode("def main():"), .max_tokens = 80, .sampling = sampling};
  request.draft = draft;
  request.ignore_eos = true;
  SilentSink sink;
  return model.generator().generate(request, sink);
}

TEST(DraftHead, NoneChangesGreedyOrCoupledText) {
  SamplingParams coupled{.temperature = 0.8f};
  coupled.seed = 7;
  for (const SamplingParams& sampling : {SamplingParams{}, coupled}) {
    const GenerateResult plain = generate("", "", sampling, false);
    for (const char* vocab : {"all", "300", "1"}) {
      for (const char* head : {"target", "q4", "q8_0"}) {
        const GenerateResult drafted = generate(vocab, head, sampling);
        EXPECT_EQ(drafted.ids, plain.ids) << vocab << " " << head;
        EXPECT_EQ(drafted.logits_hash, plain.logits_hash) << vocab << " " << head;
      }
    }
  }
}

TEST(DraftHead, ACopyOfAllRowsInTheTargetsTypeDraftsTheSameTokens) {
  const GenerateResult borrowed = generate("all", "target", {});
  const GenerateResult copied = generate("all", "bf16", {});
  EXPECT_EQ(copied.stats.drafted, borrowed.stats.drafted);
  EXPECT_EQ(copied.stats.accepted, borrowed.stats.accepted);
  EXPECT_EQ(copied.stats.lengths, borrowed.stats.lengths);
  EXPECT_GT(borrowed.stats.accepted, 0);
}

TEST(DraftHead, DraftsAreAllOfItsVocabulary) {
  const TargetFiles target = open_target(project_path("models/demo/target"));
  const DraftFiles files = open_draft(project_path("models/demo/dflash"));
  const DraftHeadChoice choice = draft_head_choice(DraftHeadOptions::parse("300", ""), target, files);
  ASSERT_FALSE(choice.vocab.empty());
  LoadOptions options;
  options.draft_head = DraftHeadOptions::parse("300", "q4");
  LoadedModel model(target, &files, options, test_exec());
  const std::vector<std::int32_t> prompt = target.tokenizer->encode("for i in range(");
  for (const AcceptMode mode : {AcceptMode::kCoupled, AcceptMode::kRejection}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Sampler sampler({.temperature = 1.5f}, mode, seed, target.config.vocab_size, test_exec());
      const auto fresh = model.drafter()->make_caches();
      const auto session = model.drafter()->open(*fresh, sampler);
      const auto target_caches = model.target().make_caches();
      const SequenceRows sequence{prompt, target_caches.get()};
      const ForwardResult pass = model.target().forward({{&sequence, 1}, model.drafter()->taps()});
      session->committed(prompt, pass.taps, 0);
      const DraftProposal proposal = session->propose(prompt.back(), 7);
      ASSERT_EQ(proposal.tokens.size(), 7u);
      for (const std::int32_t token : proposal.tokens) {
        EXPECT_TRUE(std::binary_search(choice.vocab.begin(), choice.vocab.end(), token)) << token;
      }
      EXPECT_EQ(proposal.proposed != nullptr, mode == AcceptMode::kRejection);
      if (proposal.proposed != nullptr) {
        EXPECT_EQ(proposal.proposed->ids(0).size(), choice.vocab.size());
      }
    }
  }
}

TEST(DraftHead, ANumberCountsTheFirstMergesAndAddsSpecialTokens) {
  const TargetFiles target = open_target(project_path("models/demo/target"));
  const DraftFiles files = open_draft(project_path("models/demo/dflash"));
  const auto ids = [&](const char* vocab) {
    return draft_head_choice(DraftHeadOptions::parse(vocab, ""), target, files).vocab;
  };
  const std::vector<std::int32_t> few = ids("260");
  const std::vector<std::int32_t> more = ids("300");
  EXPECT_TRUE(std::includes(more.begin(), more.end(), few.begin(), few.end()));
  EXPECT_EQ(more.size() - few.size(), 40u);
  for (const char* special : {"<|im_start|>", "<|im_end|>"}) {
    EXPECT_TRUE(std::binary_search(few.begin(), few.end(), target.tokenizer->find_token(special).value())) << special;
  }
  EXPECT_TRUE(ids("100000000").empty());  // all
}

class DraftVocabFile : public testing::Test {
 protected:
  DraftVocabFile() {
    std::filesystem::create_directories(folder_ / "target");
    std::filesystem::create_directories(folder_ / "draft");
    tiny_target({}).write(folder_ / "target");
    tiny_draft({}).write(folder_ / "draft");
  }
  DraftHeadChoice choose(const char* vocab) {
    return draft_head_choice(DraftHeadOptions::parse(vocab, ""), open_target(folder_ / "target"),
                             open_draft(folder_ / "draft"));
  }
  TempFolder folder_;
};

TEST_F(DraftVocabFile, IsTheDefaultWhenItIsThere) {
  EXPECT_TRUE(choose("").vocab.empty());
  folder_.write("draft/draft_vocab.json", "[0, 3, 319]");
  EXPECT_EQ(choose("").vocab, (std::vector<std::int32_t>{0, 3, 319}));
  EXPECT_EQ(choose("file").vocab, (std::vector<std::int32_t>{0, 3, 319}));
  EXPECT_TRUE(choose("all").vocab.empty());
}

TEST_F(DraftVocabFile, ThatIsWrongIsRefused) {
  for (const char* text : {"{}", "[]", "[1, 1]", "[3, 2]", "[-1]", "[320]", "[1.5]", "[\"1\"]",
                           "[99999999999999999999]", "[1", "[null]"}) {
    folder_.write("draft/draft_vocab.json", text);
    expect_error([&] { choose(""); }, {"draft/draft_vocab.json"});
    EXPECT_NO_THROW(choose("all")) << text;
  }
}

TEST_F(DraftVocabFile, MustBeThereWhenItIsAskedFor) {
  expect_error([&] { choose("file"); }, {"--draft-vocab file", "draft_vocab.json does not exist"});
  expect_error([&] { choose("100"); }, {"--draft-vocab 100", "tokenizer.json"});
}

TEST(DraftHeadOptions, UnknownTextsAreRefused) {
  for (const char* vocab : {"0", "-1", "some", "12x", " 12", "1e3"}) {
    expect_error([&] { DraftHeadOptions::parse(vocab, ""); }, {"--draft-vocab", vocab});
  }
  expect_error([] { DraftHeadOptions::parse("", "q3"); }, {"--draft-head = q3", "q4"});
  EXPECT_EQ(DraftHeadOptions::parse("", "q4").type, WeightType::kQ4_0);
  EXPECT_EQ(DraftHeadOptions::parse("12", "q4").label(), ", draft vocabulary 12, draft head q4_0");
  EXPECT_EQ(DraftHeadOptions::parse("", "target").label(), "");
}

}  // namespace
}  // namespace drafthorse

#include "engine/generate.h"

#include <gtest/gtest.h>

#include <map>

#include "support/error_text.h"
#include "support/scripted_drafter.h"
#include "support/scripted_target.h"
#include "support/test_machine.h"
#include "support/tiny_tokenizer.h"
#include "tokenizer/utf8.h"

namespace drafthorse {
namespace {

constexpr std::int64_t kBytes = 260;  // ids of the tiny tokenizer: the bytes, and a few to spare

/// Everything a sink was told.
class RecordingSink : public TokenSink {
 public:
  void emit(std::span<const std::int32_t> ids, std::string_view text) override {
    rounds.emplace_back(ids.begin(), ids.end());
    pieces.emplace_back(text);
  }
  bool cancelled() override { return std::ssize(rounds) >= cancel_after; }
  std::string text() const {
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    return all;
  }
  std::vector<std::vector<std::int32_t>> rounds;
  std::vector<std::string> pieces;
  std::int64_t cancel_after = INT64_MAX;
};

std::vector<std::int32_t> bytes_of(std::string_view text) {
  std::vector<std::int32_t> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

/// A target that says `text` after `prompt`, whatever it is asked, a byte a token, and then zeros.
TargetRule says(const std::vector<std::int32_t>& run) {
  return [run](std::span<const std::int32_t> history, std::span<float> logits) {
    std::fill(logits.begin(), logits.end(), 0.0f);
    const std::size_t next = history.size() < run.size() ? static_cast<std::size_t>(run[history.size()]) : 0;
    logits[next] = 30.0f;
  };
}

/// One scripted conversation: a prompt of one token, what follows it, and a drafter that knows or does not.
class Generate : public testing::Test {
 protected:
  enum class Draft { kNone, kRight, kWrong, kHalfDropped };

  GenerateResult run(const std::string& answer, const GenerateRequest& wanted, Draft draft = Draft::kNone) {
    return run_ids(bytes_of(answer), wanted, draft);
  }
  GenerateResult run_ids(const std::vector<std::int32_t>& answer, GenerateRequest request, Draft draft) {
    request.prompt = {'>'};
    std::vector<std::int32_t> whole = request.prompt;
    whole.insert(whole.end(), answer.begin(), answer.end());
    ScriptedTarget target(says(whole), kBytes);
    std::optional<ScriptedDrafter> drafter;
    if (draft == Draft::kRight) drafter.emplace(always_right(whole, kBytes), 15);
    if (draft == Draft::kWrong) drafter.emplace(always_wrong(whole, kBytes), 15);
    if (draft == Draft::kHalfDropped) drafter.emplace(half_dropped(whole, kBytes), 15);
    sink_ = {};
    sink_.cancel_after = cancel_after_;
    Generator generator({target, drafter ? &*drafter : nullptr, tokenizer_.get(), stop_ids_, test_exec()});
    return generator.generate(request, sink_);
  }

  std::unique_ptr<Tokenizer> tokenizer_ = tokenizer_of(byte_level_json());
  std::vector<std::int32_t> stop_ids_;
  RecordingSink sink_;
  std::int64_t cancel_after_ = INT64_MAX;
};

std::int64_t emitted(const GenerateResult& result) {
  std::int64_t tokens = 0;
  for (const std::int64_t length : result.stats.lengths) tokens += length;
  return tokens;
}

TEST_F(Generate, TheTextIsWhatTheTokensSpell) {
  for (const Draft draft : {Draft::kNone, Draft::kRight, Draft::kWrong}) {
    const GenerateResult result = run("hello there", {.max_tokens = 11}, draft);
    EXPECT_EQ(result.text, "hello there");
    EXPECT_EQ(result.ids, bytes_of("hello there"));
    EXPECT_EQ(result.finish_reason, FinishReason::kLength);
    EXPECT_EQ(sink_.text(), result.text);
  }
}

TEST_F(Generate, EveryDeclaredStopIdEndsTheTextAndIsInTheIdsOnly) {
  stop_ids_ = {'5', '6', '7'};
  for (const Draft draft : {Draft::kNone, Draft::kRight}) {
    for (const char stop : {'5', '6', '7'}) {
      const GenerateResult result = run(std::string("abc") + stop + "def", {.max_tokens = 7}, draft);
      EXPECT_EQ(result.text, "abc");
      EXPECT_EQ(result.ids, bytes_of(std::string("abc") + stop));
      EXPECT_EQ(result.finish_reason, FinishReason::kStop);
      EXPECT_EQ(sink_.text(), "abc");
    }
    GenerateRequest ignoring{.max_tokens = 9};
    ignoring.ignore_eos = true;
    EXPECT_EQ(run("a5b6c7def", ignoring, draft).text, "a5b6c7def");
  }
}

TEST_F(Generate, AStopIdInsideABlockEndsEverything) {
  stop_ids_ = {'!'};
  const GenerateResult result = run("abcde!ghijklmnopq", {.max_tokens = 100, .depth = 15}, Draft::kRight);
  EXPECT_EQ(result.ids, bytes_of("abcde!"));
  EXPECT_EQ(result.finish_reason, FinishReason::kStop);
  EXPECT_EQ(result.stats.rounds, 1);  // it was accepted in mid-block
  EXPECT_EQ(result.stats.lengths, std::vector<std::int64_t>{6});
  EXPECT_EQ(result.stats.accepted, 6);
}

TEST_F(Generate, NothingOfAStopStringIsEmittedInsideARoundOrAcrossTwo) {
  for (const Draft draft : {Draft::kNone, Draft::kRight, Draft::kWrong, Draft::kHalfDropped}) {
    for (const std::int64_t depth : {1, 3, 7, 15}) {
      GenerateRequest request{.max_tokens = 100};
      if (draft != Draft::kNone) request.depth = depth;
      request.stops = {"alpha omega"};
      const GenerateResult stopped = run("so alpha omega and on", request, draft);
      EXPECT_EQ(stopped.text, "so ");
      EXPECT_EQ(sink_.text(), "so ");
      EXPECT_EQ(stopped.ids, bytes_of("so alpha omega"));
      EXPECT_EQ(stopped.finish_reason, FinishReason::kStop);
      EXPECT_EQ(emitted(stopped), std::ssize(stopped.ids));

      request.max_tokens = 17;
      const GenerateResult released = run("so alpha omelette", request, draft);
      EXPECT_EQ(released.text, "so alpha omelette");
      EXPECT_EQ(sink_.text(), released.text);
    }
  }
}

TEST_F(Generate, TheLogitsHashDoesNotDependOnTheDraftEvenWhenAStopStringCutsARound) {
  GenerateRequest request{.max_tokens = 100};
  request.stops = {"omega"};
  const std::uint64_t plain = run("alpha omega and on", request).logits_hash;
  EXPECT_EQ(run("alpha omega and on", request, Draft::kRight).logits_hash, plain);
  EXPECT_EQ(run("alpha omega and on", request, Draft::kWrong).logits_hash, plain);
  EXPECT_NE(plain, 0u);
  EXPECT_NE(run("alpha Omega omega", request).logits_hash, plain);
}

TEST_F(Generate, AnEndThatNeverComesReleasesWhatWasHeld) {
  GenerateRequest request{.max_tokens = 5};
  request.stops = {"three"};
  EXPECT_EQ(run("a thrush", request).text, "a thr");
  EXPECT_EQ(sink_.text(), "a thr");
}

TEST_F(Generate, CharactersAreNeverSentInHalves) {
  const std::string answer = "\xF0\x9F\x90\xB4 \xC3\xBC \xE4\xBB\x8A";  // 4, 2 and 3 bytes, a byte a token
  for (const Draft draft : {Draft::kNone, Draft::kRight, Draft::kHalfDropped}) {
    GenerateRequest request{.max_tokens = std::ssize(answer)};
    if (draft != Draft::kNone) request.depth = 3;
    EXPECT_EQ(run(answer, request, draft).text, answer);
    for (const std::string& piece : sink_.pieces) EXPECT_EQ(find_invalid_utf8(piece), std::string::npos) << piece;
    request.max_tokens = 2;
    EXPECT_EQ(run(answer, request, draft).text, kReplacementCharacter);  // it truly ends in mid-character
  }
}

TEST_F(Generate, TheDepthIsTheDraftersLimitUnlessSaidAndClampedWithANote) {
  GenerateRequest request{.max_tokens = 64};
  GenerateResult result = run(std::string(100, 'x'), request, Draft::kRight);
  EXPECT_EQ(result.depth, 15);
  EXPECT_EQ(result.stats.lengths.front(), 16);
  EXPECT_TRUE(result.notes.empty());
  request.depth = 40;
  result = run(std::string(100, 'x'), request, Draft::kRight);
  EXPECT_EQ(result.depth, 15);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("40"), std::string::npos);
  EXPECT_NE(result.notes[0].find("15"), std::string::npos);
  request.depth = 0;
  result = run(std::string(100, 'x'), request, Draft::kRight);
  EXPECT_EQ(result.depth, 0);
  EXPECT_EQ(result.stats.drafted, 0);
  request.depth.reset();
  request.draft = false;
  EXPECT_FALSE(run(std::string(100, 'x'), request, Draft::kRight).depth.has_value());
}

TEST_F(Generate, DraftsThatADrafterDropsItselfAreNotCounted) {
  const GenerateResult result =
      run(std::string("abcdefghijklmnopqrstuvwxyz"), {.max_tokens = 26, .depth = 6}, Draft::kHalfDropped);
  EXPECT_EQ(result.stats.accepted, result.stats.drafted);
  EXPECT_EQ(emitted(result), 26);
  EXPECT_EQ(result.stats.rounds + result.stats.accepted, 26);
}

TEST_F(Generate, ASinkMayEndItBetweenRoundsAndKeepsWhatIsThere) {
  cancel_after_ = 2;
  const GenerateResult result = run("abcdefghijkl", {.max_tokens = 12, .depth = 3}, Draft::kRight);
  EXPECT_EQ(result.finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(result.text, "abcdefgh");
  EXPECT_EQ(sink_.text(), result.text);
  cancel_after_ = 0;  // before the first round; this prompt needs no prefill
  EXPECT_LE(run("abc", {.max_tokens = 3}).ids.size(), 1u);
}

/// The scripted target with a context of ten.
class ShortTarget : public ScriptedTarget {
 public:
  using ScriptedTarget::ScriptedTarget;
  const ModelFacts& facts() const override {
    static const ModelFacts kFacts = {"scripted", 1, kBytes, kBytes, 10};
    return kFacts;
  }
};

TEST_F(Generate, AFullContextEndsTheTextAtTheSamePlaceWithAndWithoutADraft) {
  const auto run_of = bytes_of("0123456789abcdef");
  for (const bool draft : {false, true}) {
    ShortTarget target(says(run_of), kBytes);
    ScriptedDrafter drafter(always_right(run_of, kBytes), 15);
    Generator generator({target, draft ? &drafter : nullptr, tokenizer_.get(), {}, test_exec()});
    const GenerateResult result = generator.generate({.prompt = bytes_of("0123")}, sink_);
    EXPECT_EQ(result.text, "456789");
    EXPECT_EQ(result.finish_reason, FinishReason::kLength);
  }
}

TEST_F(Generate, APromptThatCannotBeContinuedIsRefusedNamingWhatIsWrong) {
  ShortTarget target(says(bytes_of("0123")), kBytes);
  Generator generator({target, nullptr, nullptr, {}, test_exec()});
  const auto refused = [&](const GenerateRequest& request, std::initializer_list<const char*> parts) {
    expect_error([&] { generator.generate(request, sink_); }, parts);
    EXPECT_TRUE(target.calls.empty());
  };
  refused({}, {"empty prompt"});
  refused({.prompt = {1, 260}}, {"260", "position 1", "259"});
  refused({.prompt = {-1}}, {"-1"});
  refused({.prompt = bytes_of("0123456789")}, {"10 tokens", "context of 10"});
  refused({.prompt = {1}, .max_tokens = 0}, {"max tokens = 0"});
  refused({.prompt = {1}, .depth = 3}, {"depth = 3", "no draft"});
  GenerateRequest stops{.prompt = {1}};
  stops.stops = {"x"};
  refused(stops, {"no tokenizer"});
  stops.stops = {"x\xC3"};  // half a character
  expect_error([&] { check_request(stops, {.vocab_width = 260, .context = 10, .tokenizer = true}); },
               {"stop string", "UTF-8", "byte 1"});
}

TEST_F(Generate, ThePromptIsReadInChunksThatStopOneTokenShort) {
  ScriptedTarget target(says(bytes_of("0123456789")), kBytes);
  Generator generator({target, nullptr, tokenizer_.get(), {}, test_exec()});
  GenerateRequest request{.prompt = bytes_of("0123456"), .max_tokens = 2};
  request.chunk = 4;
  EXPECT_EQ(generator.generate(request, sink_).text, "78");
  EXPECT_EQ(target.calls, (std::vector<ScriptedTarget::Call>{{0, 4}, {4, 2}, {6, 1}, {7, 1}}));
}

}  // namespace
}  // namespace drafthorse

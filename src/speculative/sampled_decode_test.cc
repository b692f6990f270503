// Sampled decoding: what a seed promises, with and without a draft.

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "base/random.h"
#include "speculative/decoder.h"
#include "speculative/dflash_drafter.h"
#include "support/scripted_decode.h"
#include "support/scripted_drafter.h"
#include "support/scripted_target.h"

namespace drafthorse {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr std::int64_t kVocab = 50;

DecodeRequest request(Ids prompt, std::int64_t budget, std::int64_t depth) {
  DecodeRequest out;
  out.prompt = std::move(prompt);
  out.budget = budget;
  out.depth = depth;
  return out;
}

// A draft whose rows are the target's plus noise of its own: right often, not always.
DraftRule noisy_copy(std::function<void(std::int64_t slot, std::span<float>)> truth, float noise) {
  return [truth, noise](std::int32_t anchor, std::int64_t slot, std::int64_t i, std::span<float> logits) {
    truth(slot + i, logits);
    for (std::size_t x = 0; x < logits.size(); ++x) {
      const std::uint64_t bits =
          splitmix64(static_cast<std::uint64_t>(slot * 31 + anchor), x + 1000 * static_cast<std::size_t>(i));
      logits[x] += noise * static_cast<float>(static_cast<double>(bits >> 11) * 0x1p-53);
    }
  };
}

void by_slot(std::int64_t slot, std::span<float> logits) {
  for (std::size_t x = 0; x < logits.size(); ++x) {
    logits[x] =
        3.0f * static_cast<float>(static_cast<double>(splitmix64(static_cast<std::uint64_t>(slot), x) >> 11) * 0x1p-53);
  }
}

std::vector<SamplingParams> several_params() {
  std::vector<SamplingParams> out(5);
  out[0].temperature = 1;
  out[1].temperature = 0.7f;
  out[1].top_k = 5;
  out[2].temperature = 1.2f;
  out[2].top_p = 0.9f;
  out[3].temperature = 1;
  out[3].min_p = 0.2f;
  out[4].temperature = 0.8f;
  out[4].top_k = 20;
  out[4].top_p = 0.8f;
  out[4].min_p = 0.05f;
  return out;
}

TEST(SampledDecode, CoupledOutputIsTheSameAtEveryDepthWithEveryDrafter) {
  // The target's rows depend on the whole history, the draft's copy only on the slot.
  const TargetRule history = hashed_rule(5, 1.0f);
  ScriptedTarget target(
      [&](std::span<const std::int32_t> tokens, std::span<float> logits) {
        std::vector<float> more(logits.size());
        history(tokens, more);
        by_slot(std::ssize(tokens), logits);
        for (std::size_t x = 0; x < logits.size(); ++x) logits[x] += more[x];
      },
      kVocab);
  std::int64_t accepted = 0;
  std::int64_t fell = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    for (const SamplingParams& params : several_params()) {
      DecodeRequest wanted = request({4, 1, 3}, 40, 0);
      wanted.params = params;
      wanted.seed = seed;
      wanted.hash = true;
      const Decoded plain = decode(target, nullptr, wanted);
      Ids run = wanted.prompt;
      run.insert(run.end(), plain.tokens.begin(), plain.tokens.end());
      for (std::int64_t depth = 0; depth <= 7; ++depth) {
        wanted.depth = depth;
        ScriptedDraft draft(noisy_copy(by_slot, 0.5f), 8, 6, kVocab);
        DFlashDrafter drafter(draft);
        const Decoded drafted = decode(target, &drafter, wanted);
        ASSERT_EQ(drafted.tokens, plain.tokens) << "seed " << seed << " depth " << depth;
        ASSERT_EQ(drafted.hash, plain.hash);
        accepted += drafted.stats.accepted;
        fell += drafted.stats.drafted - drafted.stats.accepted;
        for (const DraftScript& script :
             {always_right(run, kVocab), always_wrong(run, kVocab), alternating(run, kVocab),
              accept_counts(run, {0, 3, 1, 7}, kVocab), half_dropped(run, kVocab)}) {
          ScriptedDrafter scripted(script, 7);
          ASSERT_EQ(decode(target, &scripted, wanted).tokens, plain.tokens) << "seed " << seed << " depth " << depth;
        }
      }
    }
  }
  EXPECT_GT(accepted, 1000);  // otherwise nothing was at stake
  EXPECT_GT(fell, 1000);
}

TEST(SampledDecode, ADraftThatCopiesTheTargetIsAccepted) {
  ScriptedTarget target(
      [](std::span<const std::int32_t> tokens, std::span<float> logits) { by_slot(std::ssize(tokens), logits); },
      kVocab);
  ScriptedDraft draft(noisy_copy(by_slot, 0.0f), 8, 6, kVocab);
  DFlashDrafter drafter(draft);
  for (const float temperature : {0.0f, 0.3f, 0.7f, 1.0f}) {
    for (const float top_p : {1.0f, 0.9f}) {
      for (const AcceptMode mode : {AcceptMode::kCoupled, AcceptMode::kRejection}) {
        DecodeRequest wanted = request({4, 1, 3}, 400, 7);
        wanted.params.temperature = temperature;
        wanted.params.top_p = top_p;
        wanted.mode = mode;
        wanted.seed = 11;
        const Decoded decoded = decode(target, &drafter, wanted);
        EXPECT_GT(decoded.stats.drafted, 300);
        EXPECT_EQ(decoded.stats.accepted, decoded.stats.drafted)
            << temperature << " " << top_p << " " << accept_mode_name(mode);
      }
    }
  }
}

TEST(SampledDecode, SeededRejectionRepeatsItself) {
  ScriptedTarget target(hashed_rule(3, 2), kVocab);
  ScriptedDraft draft(noisy_copy(by_slot, 1.0f), 8, 6, kVocab);
  DFlashDrafter drafter(draft);
  DecodeRequest wanted = request({4, 1, 3}, 60, 5);
  wanted.params.temperature = 1;
  wanted.mode = AcceptMode::kRejection;
  wanted.seed = 42;
  const Decoded once = decode(target, &drafter, wanted);
  EXPECT_EQ(decode(target, &drafter, wanted).tokens, once.tokens);
  wanted.seed = 43;
  EXPECT_NE(decode(target, &drafter, wanted).tokens, once.tokens);
}

}  // namespace
}  // namespace drafthorse

#include "sampling/sampling_params.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace drafthorse {
namespace {

TEST(SamplingParams, ASeedMakesAutoCoupledAndItsAbsenceRejection) {
  SamplingParams params;
  params.temperature = 1.0f;
  EXPECT_EQ(resolve_randomness(params, {}).mode, AcceptMode::kRejection);
  EXPECT_EQ(resolve_randomness(params, AcceptMode::kCoupled).mode, AcceptMode::kCoupled);
  params.seed = 7;
  EXPECT_EQ(resolve_randomness(params, {}).mode, AcceptMode::kCoupled);
  EXPECT_EQ(resolve_randomness(params, {}).seed, 7u);
  EXPECT_EQ(resolve_randomness(params, AcceptMode::kRejection).mode, AcceptMode::kRejection);
  EXPECT_EQ(resolve_randomness(params, AcceptMode::kRejection).seed, 7u);
}

TEST(SamplingParams, ATemperatureThatLogitsCannotBeDividedByIsGreedy) {
  SamplingParams params;
  for (const float temperature : {0.0f, -1.0f, 1e-45f, 1e-38f, 1e-30f}) {
    params.temperature = temperature;
    EXPECT_TRUE(params.greedy()) << temperature;
  }
  params.temperature = kLeastTemperature;
  EXPECT_FALSE(params.greedy());
}

TEST(SamplingParams, UnseededRequestsDrawDifferentSeeds) {
  SamplingParams params;
  params.temperature = 0.5f;
  EXPECT_NE(resolve_randomness(params, {}).seed, resolve_randomness(params, {}).seed);
}

TEST(SamplingParams, AcceptModesAreReadAsTheyAreWritten) {
  EXPECT_EQ(parse_accept_mode("auto"), std::nullopt);
  for (const AcceptMode mode : {AcceptMode::kCoupled, AcceptMode::kRejection}) {
    EXPECT_EQ(parse_accept_mode(accept_mode_name(mode)), mode);
  }
  EXPECT_THROW(parse_accept_mode("Coupled"), Error);
  EXPECT_THROW(parse_accept_mode(""), Error);
}

}  // namespace
}  // namespace drafthorse

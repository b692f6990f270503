#include "engine/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "base/random.h"

namespace drafthorse {
namespace {

/// What the pieces released one by one, and whether the text was stopped.
struct Outcome {
  std::vector<std::string> released;
  bool stopped = false;
  std::string text() const {
    std::string all;
    for (const std::string& piece : released) all += piece;
    return all;
  }
};

Outcome feed(std::vector<std::string> stops, const std::vector<std::string>& pieces) {
  StopMatcher matcher(std::move(stops));
  Outcome outcome;
  for (const std::string& piece : pieces) matcher.push(piece, outcome.released.emplace_back());
  outcome.stopped = matcher.stopped();
  matcher.finish(outcome.released.emplace_back());
  return outcome;
}

TEST(StopMatcher, NothingOfAStopStringAcrossPiecesIsReleased) {
  const Outcome outcome = feed({"alpha omega"}, {"so al", "pha", " ome", "ga and more", "still more"});
  EXPECT_TRUE(outcome.stopped);
  EXPECT_EQ(outcome.released[0], "so ");
  EXPECT_EQ(outcome.text(), "so ");
}

TEST(StopMatcher, HeldTextIsReleasedInFullWhenItTurnsOutHarmless) {
  const Outcome outcome = feed({"alpha omega"}, {"al", "pha", " ome", "lette"});
  EXPECT_FALSE(outcome.stopped);
  EXPECT_EQ(outcome.released[0], "");
  EXPECT_EQ(outcome.released[2], "");
  EXPECT_EQ(outcome.released[3], "alpha omelette");
}

TEST(StopMatcher, TheEndOfTheTextReleasesAHalfStopString) { EXPECT_EQ(feed({"END"}, {"the E", "N"}).text(), "the EN"); }

TEST(StopMatcher, ARestartInsideAHalfMatchIsSeen) {
  EXPECT_EQ(feed({"aab"}, {"a", "a", "a", "b", "c"}).text(), "a");
  EXPECT_EQ(feed({"abcabd"}, {"abcabcabd!"}).text(), "abc");
}

TEST(StopMatcher, TheMatchThatEndsFirstWinsAndTheLongestOfThoseThatEndTogether) {
  EXPECT_EQ(feed({"abcd", "bc"}, {"xabcd"}).text(), "xa");
  EXPECT_EQ(feed({"c", "abc"}, {"xabc"}).text(), "x");
}

TEST(StopMatcher, WithoutStopStringsEverythingPasses) { EXPECT_EQ(feed({}, {"a", "", "b"}).text(), "ab"); }

TEST(StopMatcher, EveryCutOfRandomTextsAgreesWithSearchingTheWholeText) {
  std::uint64_t draws = 0;
  const auto draw = [&](std::uint64_t below) { return splitmix64(11, draws++) % below; };
  const auto word = [&](std::uint64_t length) {
    std::string text;
    for (std::uint64_t i = 0; i < length; ++i) text += static_cast<char>('a' + draw(2));
    return text;
  };
  int stopped = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops;
    for (std::uint64_t i = 0, n = 1 + draw(3); i < n; ++i) stops.push_back(word(1 + draw(7)));
    const std::string text = word(draw(40));
    // The slow twin: for every end, every stop.
    std::string expected = text;
    bool match = false;
    for (std::size_t end = 1; end <= text.size() && !match; ++end) {
      for (const std::string& stop : stops) {
        if (end < stop.size() || text.compare(end - stop.size(), stop.size(), stop) != 0) continue;
        const std::size_t start = end - stop.size();
        if (!match || start < expected.size()) expected = text.substr(0, start);
        match = true;
      }
    }
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = std::min<std::size_t>(1 + draw(5), text.size() - at);
      pieces.push_back(text.substr(at, length));
      at += length;
    }
    const Outcome outcome = feed(stops, pieces);
    ASSERT_EQ(outcome.text(), expected) << "text " << text;
    ASSERT_EQ(outcome.stopped, match);
    stopped += match;
    // What is released early is never more than what is certain.
    StopMatcher matcher(stops);
    std::string early;
    std::string seen;
    for (const std::string& piece : pieces) {
      seen += piece;
      matcher.push(piece, early);
      if (matcher.stopped()) break;
      for (const std::string& stop : stops) {
        for (std::size_t k = std::min(stop.size() - 1, seen.size()); k > 0; --k) {
          if (seen.compare(seen.size() - k, k, stop, 0, k) == 0) {
            ASSERT_LE(early.size(), seen.size() - k);
            break;
          }
        }
      }
    }
  }
  EXPECT_GT(stopped, 500);
  EXPECT_LT(stopped, 2900);
}

TEST(StopMatcher, LongHeldTextCostsLinearTime) {
  const auto seconds = [](std::size_t length) {
    const auto start = std::chrono::steady_clock::now();
    StopMatcher matcher({std::string(length, 'a') + "b"});
    std::string out;
    for (std::size_t i = 0; i < 2 * length; ++i) matcher.push("a", out);  // holds `length` bytes nearly all the time
    EXPECT_EQ(out.size(), length);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  seconds(20000);
  EXPECT_LT(seconds(200000), 1.0);  // a copy of the held text per push would move 60 GB
}

}  // namespace
}  // namespace drafthorse

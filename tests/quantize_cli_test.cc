// `drafthorse quantize` as a user calls it.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "support/program.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace drafthorse {
namespace {

using Words = std::vector<std::string>;

ProgramResult drafthorse(Words words) {
  words.insert(words.begin(), DRAFTHORSE_BINARY);
  return run_program(words);
}

Json run_json(const std::string& target, const std::string& draft, const Words& more) {
  Words words = {"run", target, "--draft", draft, "-p", "def main():", "-n", "48", "--threads", "1", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  const ProgramResult result = drafthorse(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return Json::parse(result.out);
}

TEST(QuantizeCommand, ThePackedPairWritesWhatThePairWritesWithTheSameWeights) {
  const TempFolder folder;
  const std::string target = project_path("models/demo/target");
  const std::string draft = project_path("models/demo/dflash");
  const ProgramResult made = drafthorse({"quantize", target, folder / "target", "--weights", "q4_k"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(made.out.find("25 linear layers packed as q4_k, 10.0 MB of tensors became 5.1 MB"), std::string::npos)
      << made.out;
  EXPECT_EQ(drafthorse({"quantize", draft, folder / "draft", "--weights", "q4_k"}).exit_code, 0);
  const Json packed = run_json(folder / "target", folder / "draft", {});
  const Json plain = run_json(target, draft, {"--weights", "q4_k"});
  for (const char* key : {"text", "ids", "logits_hash", "rounds", "accepted", "weights"})
    EXPECT_EQ(packed[key], plain[key]) << key;

  const ProgramResult listed = drafthorse({"inspect", folder / "target", folder / "draft"});
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_NE(listed.out.find("they fit"), std::string::npos);
  EXPECT_NE(listed.out.find("in kernel order"), std::string::npos);  // the head, which is the embedding table too
}

TEST(QuantizeCommand, MistakesAreOneLineAndLeaveNothing) {
  const TempFolder folder;
  const std::string target = project_path("models/demo/target");
  struct Case {
    Words words;
    const char* part;
  };
  for (const Case& bad :
       {Case{{"quantize", target, folder / "out", "--weights", "q3"}, "q3"},
        Case{{"quantize", target, folder / "out"}, "--weights"},
        Case{{"quantize", folder / "none", folder / "out", "--weights", "q8_0"}, "none: does not exist"},
        Case{{"quantize", target, target, "--weights", "q8_0"}, "is not empty"},
        Case{{"quantize", target, "/dev/null/out", "--weights", "q8_0"}, "/dev/null/out"}}) {
    const ProgramResult result = drafthorse(bad.words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(bad.part), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  }
}

}  // namespace
}  // namespace drafthorse

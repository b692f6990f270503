// The program as people meet it: flags in, text out, exit codes.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/json.h"
#include "support/program.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"
#include "support/tiny_checkpoint.h"
#include "support/tiny_tokenizer.h"

namespace drafthorse {
namespace {

using Words = std::vector<std::string>;

ProgramResult drafthorse(Words words, const std::string& input = "") {
  words.insert(words.begin(), DRAFTHORSE_BINARY);
  return run_program(words, input);
}

std::string demo(const std::string& name) { return project_path("models/demo/" + name); }

/// `words` with the demonstration pair.
Words with_pair(Words words) {
  words.insert(words.begin() + 1, {demo("target"), "--draft", demo("dflash"), "--threads", "1"});
  return words;
}

Json run_json(Words words) {
  words.push_back("--json");
  const ProgramResult result = drafthorse(with_pair(std::move(words)));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
  return parse_json(result.out, "output");
}

std::int64_t lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(Program, AloneItNamesItsCommands) {
  const ProgramResult result = drafthorse({});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* command : {"run", "verify", "score", "inspect", "tokenize", "bench"}) {
    EXPECT_NE(result.out.find(command), std::string::npos) << command;
  }
}

TEST(Program, EveryCommandExplainsItselfWithAnExample) {
  for (const char* command : {"run", "verify", "score", "inspect", "tokenize", "bench"}) {
    const ProgramResult result = drafthorse({command, "--help"});
    EXPECT_EQ(result.exit_code, 0) << command;
    EXPECT_NE(result.out.find("Example:\n  "), std::string::npos) << command;
    EXPECT_NE(result.out.find("drafthorse " + std::string(command)), std::string::npos) << command;
    EXPECT_EQ(result.err, "");
  }
  EXPECT_NE(drafthorse({"--version"}).out.find("commit"), std::string::npos);
}

TEST(Run, TextIsAllThereIsOnStandardOutputAndOneLineSumsUp) {
  const ProgramResult result = drafthorse(with_pair({"run", "-p", "def add(a, b):", "-n", "24"}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, run_json({"run", "-p", "def add(a, b):", "-n", "24"})["text"].get<std::string>());
  EXPECT_EQ(lines(result.err), 1) << result.err;
  for (const char* part :
       {"24 tokens", "tokens/s", "depth 7", "drafted", "accepted", "1 thread (as asked),", "weights bf16"}) {
    EXPECT_NE(result.err.find(part), std::string::npos) << part << " is not in " << result.err;
  }
}

TEST(Run, WithADraftAndNoDepthItDrafts) {
  const Json json = run_json({"run", "-p", "import os\n", "-n", "100", "--ignore-eos"});
  EXPECT_EQ(json["depth"], 7);
  EXPECT_GT(json["drafted"], 0);
  EXPECT_GT(json["accepted"], 0);
  EXPECT_GT(json["mean_accepted"], 0.0);
}

TEST(Run, JsonHasTheFieldsOthersRelyOn) {
  const Json json =
      run_json({"run", "--ids", "322,1040", "-n", "20", "--temperature", "0.7", "--seed", "5", "--ignore-eos"});
  for (const char* field : {"prompt_ids", "ids", "text", "finish_reason", "rounds", "drafted", "accepted",
                            "mean_accepted", "accepted_by_position", "lengths", "prefill_seconds", "decode_seconds",
                            "tokens_per_second", "logits_hash", "seed", "isa", "threads", "weights"}) {
    EXPECT_TRUE(json.contains(field)) << field;
  }
  EXPECT_EQ(json["prompt_ids"], Json({322, 1040}));
  EXPECT_EQ(json["ids"].size(), 20u);
  EXPECT_EQ(json["finish_reason"], "length");
  EXPECT_EQ(json["seed"], 5);
  EXPECT_EQ(json["accept"], "coupled");
  EXPECT_EQ(json["threads"], 1);
  std::int64_t emitted = 0;
  for (const Json& length : json["lengths"]) emitted += length.get<std::int64_t>();
  EXPECT_EQ(emitted, 20);
  EXPECT_EQ(json["rounds"], json["lengths"].size());
  std::int64_t accepted = 0;
  for (const Json& count : json["accepted_by_position"]) accepted += count.get<std::int64_t>();
  EXPECT_EQ(json["accepted"], accepted);
  EXPECT_EQ(json["logits_hash"].get<std::string>().substr(0, 2), "0x");
}

TEST(Run, TheDepthMayBeOffZeroOrMoreThanTheDraftCanDo) {
  const Json off = run_json({"run", "-p", "a", "-n", "12", "--depth", "off"});
  EXPECT_TRUE(off["depth"].is_null());
  const Json zero = run_json({"run", "-p", "a", "-n", "12", "--depth", "0"});
  EXPECT_EQ(zero["depth"], 0);
  EXPECT_EQ(zero["drafted"], 0);
  const Json deep = run_json({"run", "-p", "a", "-n", "12", "--depth", "30"});
  EXPECT_EQ(deep["depth"], 7);
  EXPECT_EQ(deep["notes"].size(), 1u);
  EXPECT_EQ(off["ids"], deep["ids"]);
  EXPECT_EQ(off["ids"], zero["ids"]);
  EXPECT_EQ(off["logits_hash"], deep["logits_hash"]);
  const ProgramResult shown = drafthorse(with_pair({"run", "-p", "a", "-n", "4", "--depth", "30"}));
  EXPECT_NE(shown.err.find("depth 30"), std::string::npos) << shown.err;
}

TEST(Run, ASeedDrawnForTheUserIsShownAndRepeatsTheRun) {
  const Json first = run_json({"run", "-p", "import", "-n", "20", "--temperature", "1"});
  const std::string seed = std::to_string(first["seed"].get<std::uint64_t>());
  const std::string accept = first["accept"];
  EXPECT_EQ(
      run_json({"run", "-p", "import", "-n", "20", "--temperature", "1", "--seed", seed, "--accept", accept})["ids"],
      first["ids"]);
  const ProgramResult shown = drafthorse(with_pair({"run", "-p", "import", "-n", "4", "--temperature", "1"}));
  EXPECT_NE(shown.err.find("; seed "), std::string::npos) << shown.err;
  EXPECT_NE(shown.err.find("accept rejection"), std::string::npos) << shown.err;
}

TEST(Run, ThePromptMayComeFromAFileOrStandardInput) {
  TempFolder folder;
  const std::string file = folder.write("prompt.txt", "def f(x):\n");
  const Words rest = {"-n", "8"};
  const std::string out = drafthorse(with_pair({"run", "-p", "def f(x):\n", "-n", "8"})).out;
  EXPECT_EQ(drafthorse(with_pair({"run", "--prompt-file", file, "-n", "8"})).out, out);
  EXPECT_EQ(drafthorse(with_pair({"run", "-n", "8"}), "def f(x):\n").out, out);
}

TEST(Run, AnEmptyInputIsAnErrorAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  const ProgramResult result = drafthorse(with_pair({"run"}));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));  // 1 s and what a busy machine adds
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(lines(result.err), 1);
  EXPECT_NE(result.err.find("empty prompt"), std::string::npos) << result.err;
}

TEST(Run, AStopStringEndsTheText) {
  const std::string text = run_json({"run", "-p", "import os\n", "-n", "60", "--ignore-eos"})["text"];
  const std::string stop = text.substr(text.size() / 2, 5);
  const Json json = run_json({"run", "-p", "import os\n", "-n", "60", "--ignore-eos", "--stop", stop});
  EXPECT_EQ(json["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(json["finish_reason"], "stop");
}

TEST(Run, WithoutAModelTheDemonstrationPairRuns) {
  const ProgramResult result = drafthorse({"run", "-p", "import", "-n", "4", "--threads", "1"});
  EXPECT_TRUE(result.exit_code == 0 || result.err.find("models/demo") != std::string::npos) << result.err;
  // Beside a copy of models/demo it is found, wherever the program stands.
  TempFolder folder;
  std::filesystem::create_directories(folder / "models");
  std::filesystem::create_directories(folder / "build/release");
  std::filesystem::create_directory_symlink(project_path("models/demo"), folder / "models/demo");
  std::filesystem::copy_file(DRAFTHORSE_BINARY, folder / "build/release/drafthorse");
  const ProgramResult moved =
      run_program({folder / "build/release/drafthorse", "run", "-p", "import", "-n", "4", "--threads", "1"});
  EXPECT_EQ(moved.exit_code, 0) << moved.err;
  EXPECT_NE(moved.err.find("depth 7"), std::string::npos) << moved.err;
}

/// A running program whose pipes the test holds. Its input is empty, or, `waiting`, one that never ends.
class Running {
 public:
  explicit Running(Words words, bool waiting = false) {
    words.insert(words.begin(), DRAFTHORSE_BINARY);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    int in[2];
    int out[2];
    int err[2];
    for (int* ends : {in, out, err}) {
      if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    }
    process_ = ::fork();
    if (process_ == 0) {
      std::signal(SIGINT, SIG_DFL);  // shells let what they start with & ignore it, and that is inherited
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      ::dup2(err[1], 2);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    ::close(err[1]);
    in_ = in[1];
    if (!waiting) close_input();
    out_ = out[0];
    err_ = err[0];
  }
  ~Running() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    close_input();
    close_output();
    ::close(err_);
  }
  /// Waits for the first bytes of the text.
  std::string read_some() {
    char buffer[4096];
    const ssize_t got = ::read(out_, buffer, sizeof buffer);
    return {buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
  }
  void close_output() {
    if (out_ >= 0) ::close(out_);
    out_ = -1;
  }
  void close_input() {
    if (in_ >= 0) ::close(in_);
    in_ = -1;
  }
  void interrupt() { ::kill(process_, SIGINT); }
  /// The exit code, or -1 when it has not ended after `seconds`.
  int wait(int seconds) {
    for (int i = 0; i < seconds * 50; ++i) {
      int status = 0;
      if (::waitpid(process_, &status, WNOHANG) == process_)
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return -1;
  }
  std::string read_errors() {
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = ::read(err_, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(got));
    return text;
  }

 private:
  pid_t process_ = -1;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
};

// Long enough to be under way when the test acts: f32 on the slow kernels.
Words long_run() {
  Words words =
      with_pair({"run", "-p", "import os\n", "-n", "1900", "--ignore-eos", "--weights", "f32", "--isa", "scalar"});
  return words;
}

TEST(Run, ControlCFinishesTheRoundAndSaysSo) {
  Running program(long_run());
  ASSERT_FALSE(program.read_some().empty());
  program.interrupt();
  EXPECT_EQ(program.wait(20), 130);
  const std::string errors = program.read_errors();
  EXPECT_EQ(lines(errors), 1) << errors;
  EXPECT_NE(errors.find("interrupted"), std::string::npos) << errors;
}

TEST(Run, ControlCWhileThePromptIsTypedEndsItAtOnce) {
  Running program(with_pair({"run"}), true);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // by then it reads its input
  program.interrupt();
  EXPECT_EQ(program.wait(20), 130);
}

TEST(Program, OutputThatCannotBeWrittenIsAnError) {
  for (const Words& words :
       {with_pair({"run", "-p", "x", "-n", "2"}), with_pair({"run", "-p", "x", "-n", "2", "--json"}),
        Words{"score", demo("target"), "--ids", "1,2"}, Words{"inspect", demo("target")}, Words{"--help"},
        Words{"run", "--help"}}) {
    std::string line = "exec \"$0\" \"$@\" > /dev/full";
    Words command = {"/bin/sh", "-c", line, DRAFTHORSE_BINARY};
    command.insert(command.end(), words.begin(), words.end());
    const ProgramResult result = run_program(command);
    EXPECT_EQ(result.exit_code, 2) << words.front();
    EXPECT_EQ(lines(result.err), 1) << result.err;
    EXPECT_NE(result.err.find("standard output"), std::string::npos) << result.err;
  }
}

TEST(Run, AReaderWhoLeavesEndsItQuietly) {
  Running program(long_run());
  ASSERT_FALSE(program.read_some().empty());
  program.close_output();
  EXPECT_EQ(program.wait(20), 0);
  EXPECT_EQ(program.read_errors(), "");
}

struct BadCase {
  const char* name;
  Words words;
  const char* part;  ///< of the error
};

class BadInput : public testing::TestWithParam<BadCase> {};

TEST_P(BadInput, GivesOneLineAndExitCodeTwo) {
  const ProgramResult result = drafthorse(GetParam().words);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(lines(result.err), 1) << result.err;
  EXPECT_EQ(result.err.substr(0, 12), "drafthorse: ") << result.err;
  EXPECT_NE(result.err.find(GetParam().part), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "");
}

INSTANTIATE_TEST_SUITE_P(
    Flags, BadInput,
    testing::Values(
        BadCase{"UnknownCommand", {"paint"}, "paint"}, BadCase{"UnknownFlag", {"run", "--frobnicate"}, "--frobnicate"},
        BadCase{"NoSuchModel", {"run", "/nonexistent/model", "-p", "x"}, "/nonexistent/model"},
        BadCase{"NoSuchDraft", with_pair({"run", "-p", "x", "--draft", "/nonexistent/draft"}), "--draft"},
        BadCase{"DraftWithoutConfig", {"run", demo("target"), "--draft", "/tmp", "-p", "x"}, "config.json"},
        BadCase{"TargetAsDraft", {"run", demo("target"), "--draft", demo("target"), "-p", "x"}, "architectures"},
        BadCase{"DraftAsTarget", {"run", demo("dflash"), "-p", "x"}, "DFlashDraftModel"},
        BadCase{"UnknownWeights", {"run", demo("target"), "-p", "x", "--weights", "q3"}, "q3"},
        BadCase{"UnknownKv", {"run", demo("target"), "-p", "x", "--kv", "f16"}, "--kv"},
        BadCase{"UnknownIsa", {"run", demo("target"), "-p", "x", "--isa", "mmx"}, "--isa: kernels: \"mmx\""},
        BadCase{"NoThreads", {"run", demo("target"), "-p", "x", "--threads", "0"}, "--threads"},
        BadCase{"ThreadsNotANumber", {"run", demo("target"), "-p", "x", "--threads", "two"}, "two"},
        BadCase{"IdsNotNumbers", {"run", demo("target"), "--ids", "1,x"}, "--ids"},
        BadCase{"IdOutsideTheVocabulary", {"run", demo("target"), "--ids", "1,4096"}, "4096"},
        BadCase{"EmptyPrompt", {"run", demo("target"), "-p", ""}, "empty prompt"},
        BadCase{"TwoPrompts", {"run", demo("target"), "-p", "x", "--ids", "1"}, "--ids"},
        BadCase{"NoPromptFile", {"run", demo("target"), "--prompt-file", "/nonexistent/p"}, "/nonexistent/p"},
        BadCase{"PromptNotUtf8", {"run", demo("target"), "-p", "\xff\xfe"}, "-p: not valid UTF-8"},
        BadCase{"TextNotUtf8", {"score", demo("target"), "--text", "\xff"}, "--text: not valid UTF-8"},
        BadCase{"NoTokensWanted", {"run", demo("target"), "-p", "x", "-n", "0"}, "--max-tokens"},
        BadCase{"DepthNotANumber", with_pair({"run", "-p", "x", "--depth", "deep"}), "--depth"},
        BadCase{"DepthWithoutADraft", {"run", demo("target"), "-p", "x", "--depth", "3"}, "no draft"},
        BadCase{"NegativeTemperature", {"run", demo("target"), "-p", "x", "--temperature=-1"}, "--temperature"},
        BadCase{"TopPAboveOne", {"run", demo("target"), "-p", "x", "--top-p", "1.5"}, "--top-p"},
        BadCase{"TemperatureNotANumber", {"run", demo("target"), "-p", "x", "--temperature", "nan"}, "--temperature"},
        BadCase{"TemperatureTooHigh", {"run", demo("target"), "-p", "x", "--temperature", "1e9"}, "to 1000000"},
        BadCase{"NegativeSeed", {"run", demo("target"), "-p", "x", "--seed=-1"}, "--seed"},
        BadCase{"SeedOf65Bits", {"run", demo("target"), "-p", "x", "--seed", "18446744073709551616"}, "--seed"},
        BadCase{"StopNotUtf8", {"run", demo("target"), "-p", "x", "--stop", "\xc3"}, "--stop"},
        BadCase{"ModelWithoutAName", {"run", "", "-p", "x"}, "MODEL"},
        BadCase{"PromptFileWithoutAName", {"run", demo("target"), "--prompt-file", ""}, "cannot open"},
        BadCase{"UnknownAccept", {"run", demo("target"), "-p", "x", "--accept", "maybe"}, "maybe"},
        BadCase{"EmptyStop", {"run", demo("target"), "-p", "x", "--stop", ""}, "--stop"},
        BadCase{"ContextTooLong", {"run", demo("target"), "-p", "x", "--context", "4096"}, "2048"},
        BadCase{"PromptLongerThanTheContext",
                {"run", demo("target"), "--ids", "1,2,3,4,5", "--context", "4"},
                "context of 4"},
        BadCase{"VerifyWithoutADraft", {"verify", demo("target")}, "--draft"},
        BadCase{"VerifyByRejection", with_pair({"verify", "--temperature", "1"}), "rejection"},
        BadCase{"VerifyNoPrompts", with_pair({"verify", "--prompts", "/dev/null"}), "/dev/null"},
        BadCase{"VerifyBadDepths", with_pair({"verify", "--depths", "1,,3"}), "--depths"},
        BadCase{"ScoreNothing", {"score", demo("target")}, "--ids"},
        BadCase{"ScoreIdOutsideTheVocabulary", {"score", demo("target"), "--ids", "1,4096"}, "id 4096 at position 1"},
        BadCase{"TokenizeNoFolder", {"tokenize", "/nonexistent/model"}, "/nonexistent/model"},
        BadCase{"BenchShapeWithADraftHead", {"bench", "--shape", "0.6b", "--draft-head", "q4"}, "no --draft-vocab"},
        BadCase{
            "DraftVocabWithoutADraft", {"run", demo("target"), "-p", "x", "--draft-vocab", "9"}, "there is no draft"},
        BadCase{"BenchUnknownShape", {"bench", "--shape", "9b"}, "9b"}),
    [](const auto& parameter) { return parameter.param.name; });

// A model's weights take minutes to read; what is wrong with a request is known before.
TEST(Run, ARequestIsCheckedBeforeTheWeightsAreRead) {
  TempFolder folder;
  TinyCheckpoint target = tiny_target({});
  target.tensors.erase(target.tensors.begin());  // reading the weights would fail
  target.write(folder.path());
  const auto error_of = [&](Words words) {
    words.insert(words.begin(), {"run", folder.path()});
    return drafthorse(words).err;
  };
  EXPECT_NE(error_of({"--ids", "1,999999"}).find("999999"), std::string::npos);
  EXPECT_NE(error_of({"--ids", "1,2,3", "--context", "3"}).find("context of 3"), std::string::npos);
  EXPECT_NE(error_of({"--ids", "1", "--depth", "2"}).find("no draft"), std::string::npos);
  EXPECT_NE(error_of({"--ids", "1", "--stop", "x"}).find("no tokenizer"), std::string::npos);
}

TEST(Run, AVerySmallTopPLeavesOnlyTheLikeliestToken) {
  const Json greedy = run_json({"run", "-p", "import os\n", "-n", "20"});
  EXPECT_EQ(run_json({"run", "-p", "import os\n", "-n", "20", "--temperature", "2", "--seed", "1", "--top-p",
                      "1e-60"})["ids"],
            greedy["ids"]);
}

TEST(Verify, APromptThatCannotBeUsedIsNamedByFileAndLine) {
  TempFolder folder;
  for (const auto& [text, part] : {std::pair{R"({"ids":[4096]})", "4096"}, std::pair{R"({"ids":[]})", "empty"},
                                   std::pair{R"({"ids":[1],"prompt":"x"})", "give one"}}) {
    const std::string file = folder.write("prompts.jsonl", std::string("{\"ids\":[1]}\n") + text + "\n");
    const ProgramResult result = drafthorse(with_pair({"verify", "--prompts", file}));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(lines(result.err), 1) << result.err;
    EXPECT_NE(result.err.find(file + ": line 2"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  }
}

TEST(Verify, ADepthAboveTheDraftsIsSaid) {
  TempFolder folder;
  const std::string file = folder.write("prompts.jsonl", "{\"ids\":[1]}\n");
  const ProgramResult result = drafthorse(with_pair({"verify", "--prompts", file, "-n", "4", "--depths", "3,99"}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.err.find("99"), std::string::npos) << result.err;
  EXPECT_EQ(lines(result.err), 1) << result.err;
}

TEST(Program, ALinkThatLeadsNowhereIsAnErrorThatSaysSo) {
  TempFolder folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  for (const Words& words : {Words{"inspect", folder / "loop"}, Words{"tokenize", folder / "loop"},
                             Words{"run", folder / "loop", "-p", "x"}}) {
    const ProgramResult result = drafthorse(words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find("loop"), std::string::npos) << result.err;
  }
  tiny_target({}).write(folder.path());
  std::filesystem::create_symlink("gone", folder / "generation_config.json");  // as in a cache that lost a file
  const ProgramResult result = drafthorse({"run", folder.path(), "--ids", "1", "-n", "1"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("generation_config.json: cannot open"), std::string::npos) << result.err;
}

TEST(Run, AModelWithoutATokenizerTakesIdsOnly) {
  TempFolder folder;
  tiny_target({}).write(folder.path());
  const ProgramResult text = drafthorse({"run", folder.path(), "-p", "x"});
  EXPECT_EQ(text.exit_code, 2);
  EXPECT_NE(text.err.find("--ids"), std::string::npos) << text.err;
  const ProgramResult ids = drafthorse({"run", folder.path(), "--ids", "1,2,3", "-n", "5", "--ignore-eos"});
  EXPECT_EQ(ids.exit_code, 0) << ids.err;
  EXPECT_EQ(std::count(ids.out.begin(), ids.out.end(), ','), 4) << ids.out;  // there is no text to show
}

TEST(Run, SamplingFollowsTheModelsRecommendationOnlyWhereItSaysSo) {
  TempFolder folder;
  std::filesystem::copy(demo("target"), folder.path(),
                        std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  const Words words = {"run", folder.path(), "-p", "import", "-n", "6", "--threads", "1", "--json"};
  folder.write("generation_config.json", R"({"do_sample": false, "temperature": 0.6, "num_beams": 4})");
  const ProgramResult greedy = drafthorse(words);
  ASSERT_EQ(greedy.exit_code, 0) << greedy.err;
  EXPECT_TRUE(parse_json(greedy.out, "output")["seed"].is_null());
  EXPECT_EQ(greedy.err, "");
  folder.write("generation_config.json",
               R"({"do_sample": true, "temperature": 0.6, "num_beams": 4, "repetition_penalty": 1.1})");
  const ProgramResult sampled = drafthorse(words);
  EXPECT_TRUE(parse_json(sampled.out, "output")["seed"].is_number());
  EXPECT_NE(sampled.err.find("num_beams"), std::string::npos) << sampled.err;
  EXPECT_NE(sampled.err.find("repetition_penalty"), std::string::npos) << sampled.err;
  Words forced = words;
  forced.insert(forced.end(), {"--temperature", "0"});
  EXPECT_TRUE(parse_json(drafthorse(forced).out, "output")["seed"].is_null());
}

TEST(Verify, AnHonestPairExitsWithZeroAndSaysWhatItCompared) {
  const ProgramResult result =
      drafthorse(with_pair({"verify", "-n", "6", "--depths", "1,7", "--chunks", "7,512", "--json"}));
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  const Json json = parse_json(result.out, "output");
  EXPECT_EQ(json["equal"], true);
  EXPECT_EQ(json["prompts"], 16);
  EXPECT_EQ(json["runs"], 16 * 2 * 3 * 2 - 16);
  EXPECT_GT(json["tokens_compared"], 1000);
  EXPECT_GT(json["drafted"], 0);
}

TEST(Verify, EveryCombinationOfMachinesRuns) {
  TempFolder folder;
  const std::string prompts = folder.write("prompts.jsonl", "{\"prompt\": \"import os\"}\n\n{\"ids\": [5, 6, 7]}\n");
  const ProgramResult result =
      drafthorse({"verify", demo("target"), "--draft", demo("dflash"), "--prompts", prompts, "-n", "8", "--depths", "3",
                  "--threads", "1,2", "--weights", "bf16,q8_0", "--isa", "scalar,avx2-base"});
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_EQ(lines(result.out), 9) << result.out;  // one a machine, and the sum
  EXPECT_NE(result.out.find("scalar q8_0, 2 threads: equal"), std::string::npos) << result.out;
}

TEST(Verify, CoupledSamplingIsComparedToo) {
  const ProgramResult result =
      drafthorse(with_pair({"verify", "-n", "6", "--depths", "7", "--temperature", "0.8", "--seed", "3"}));
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
}

TEST(Score, PrintsWhatOthersReadBack) {
  const ProgramResult result = drafthorse({"score", demo("target"), "--ids", "322,1040,1082", "--top", "2", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = parse_json(result.out, "output");
  EXPECT_EQ(json["ids"], Json({322, 1040, 1082}));
  EXPECT_EQ(json["nll"].size(), 2u);
  ASSERT_EQ(json["top"].size(), 3u);
  EXPECT_EQ(json["top"][0]["ids"].size(), 2u);
  EXPECT_GE(json["top"][0]["logits"][0], json["top"][0]["logits"][1]);
  EXPECT_NEAR(json["nll_mean"].get<double>(), (json["nll"][0].get<double>() + json["nll"][1].get<double>()) / 2, 1e-9);
}

TEST(Score, TheLikeliestNextTokenIsWhatGreedyDecodingTakes) {
  const Json run = run_json({"run", "--ids", "322,1040,1082", "-n", "1", "--ignore-eos"});
  const ProgramResult result = drafthorse({"score", demo("target"), "--ids", "322,1040,1082", "--top", "1", "--json"});
  EXPECT_EQ(parse_json(result.out, "output")["top"][2]["ids"][0], run["ids"][0]);
}

TEST(Inspect, ShowsTheFilesAndWhetherThePairFits) {
  const ProgramResult result = drafthorse({"inspect", demo("target"), demo("dflash")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"Qwen3ForCausalLM", "vocab_size 4096", "model.embed_tokens.weight", "BF16", "stop ids: 0 2",
                           "DFlashDraftModel", "block_size 8", "target_layer_ids 1 3 4", "they fit"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part;
  }
  TempFolder folder;
  tiny_draft({}).write(folder.path());
  const ProgramResult misfit = drafthorse({"inspect", demo("target"), folder.path()});
  EXPECT_EQ(misfit.exit_code, 2);
  EXPECT_EQ(lines(misfit.err), 1);
}

TEST(Inspect, ASecondTargetIsRefused) {
  const ProgramResult result = drafthorse({"inspect", demo("target"), demo("target")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("second target"), std::string::npos) << result.err;
}

TEST(Tokenize, GoesThereAndBack) {
  const std::string text = "def f(x):\n    return \xC3\xBC\xF0\x9F\x90\xB4<|im_end|>";
  const ProgramResult there = drafthorse({"tokenize", demo("target")}, text);
  ASSERT_EQ(there.exit_code, 0) << there.err;
  const ProgramResult back = drafthorse({"tokenize", demo("target"), "--decode"}, there.out);
  EXPECT_EQ(back.out, text + "\n");
}

TEST(Tokenize, AFolderWithTokenizerFilesOnlyWillDoAndEveryLineIsAnswered) {
  TempFolder folder;
  folder.write("tokenizer.json", byte_level_json().dump());
  const ProgramResult result = drafthorse({"tokenize", folder.path(), "--jsonl"},
                                          "{\"text\": \"ab\"}\n{\"text\": \"\\u2028\"}\n{\"text\": \"\"}\n");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            "{\"ids\":[97,98],\"decoded\":\"ab\"}\n{\"ids\":[226,128,168],\"decoded\":\"\\u2028\"}\n{\"ids\":[],"
            "\"decoded\":\"\"}\n");
  const ProgramResult back = drafthorse({"tokenize", folder.path(), "--jsonl", "--decode"}, "{\"ids\": [97, 255]}\n");
  EXPECT_EQ(back.out, "{\"ids\":[97,255],\"decoded\":\"a\\ufffd\"}\n");
  const ProgramResult bad = drafthorse({"tokenize", folder.path(), "--jsonl"}, "{\"text\": \"ab\"}\nnot json\n");
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_NE(bad.err.find("line 2"), std::string::npos) << bad.err;
}

TEST(Bench, AModelFromFilesGivesPassTimesAndDecodingSpeed) {
  const ProgramResult result = drafthorse(with_pair({"bench", "-n", "8", "--json"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = parse_json(result.out, "output");
  for (const char* field : {"cpu", "isa", "threads", "commit", "read_gb_per_s", "weights", "bound_ms", "rows", "ops"}) {
    EXPECT_TRUE(json.contains(field)) << field;
  }
  EXPECT_EQ(json["rows"].size(), 16u);
  EXPECT_GT(json["rows"]["1"], 0.0);
  EXPECT_GT(json["read_gb_per_s"], 0.5);
  EXPECT_GT(json["plain_tokens_per_second"], 0.0);
  EXPECT_GT(json["speculative_tokens_per_second"], 0.0);
}

}  // namespace
}  // namespace drafthorse

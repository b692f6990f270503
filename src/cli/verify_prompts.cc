#include "cli/verify_prompts.h"

#include <algorithm>
#include <cstdint>
#include <sstream>

#include "base/error.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "base/random.h"
#include "cli/flags.h"

namespace drafthorse {
namespace {

constexpr int kPrompts = 16;

std::string long_text() {
  std::string text = "# A table of squares\n";
  for (int i = 0; i < 60; ++i) text += "square_" + std::to_string(i) + " = " + std::to_string(i * i) + "\n";
  return text;
}

std::vector<std::string> built_in_texts() {
  return {
      "def add(a, b):\n    \"\"\"Return the sum of a and b.\"\"\"\n",
      "import os\nimport sys\n\n\ndef main():\n    for path in sys.argv[1:]:\n",
      "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(self, item):\n",
      "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n",
      "<|im_start|>user\nCount from one to five.<|im_end|>\n<|im_start|>assistant\n",
      "The horse stood in the rain and did not mind it. ",
      "a",
      "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ",
      "| name | age |\n|------|-----|\n| Ann  |  31 |\n| Bob  |",
      "{\"items\": [{\"id\": 1, \"name\": \"first\"}, {\"id\": 2, \"name\":",
      "\xC3\x9C"
      "ber den Fluss f\xC3\xBChrt eine alte Br\xC3\xBC"
      "cke. ",
      "\xE4\xBB\x8A\xE6\x97\xA5\xE3\x81\xAF\xE8\x89\xAF\xE3\x81\x84\xE5\xA4\xA9\xE6\xB0\x97\xE3\x81\xA7\xE3\x81\x99\xE3"
      "\x80\x82",
      "\xF0\x9F\x90\xB4\xF0\x9F\x90\xB4\xF0\x9F\x90\xB4 ",
      "try:\n    value = int(text)\nexcept ValueError:\n",
      "SELECT name, COUNT(*) FROM orders WHERE total > 100 GROUP BY",
      long_text(),
  };
}

}  // namespace

std::vector<std::vector<std::int32_t>> read_prompts(const std::string& path, const TargetFiles& files,
                                                    std::int64_t context) {
  std::istringstream lines(read_text_file(path));
  std::vector<std::vector<std::int32_t>> prompts;
  std::string text;
  for (std::int64_t number = 1; std::getline(lines, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string source = path + ": line " + std::to_string(number);
    const Json json = parse_json(text, source);
    const JsonObject line(json, source);
    if (line.has("ids") && line.has("prompt")) throw Error(source + ": prompt and ids: give one of them");
    if (line.has("ids")) {
      prompts.push_back(ids_of_json(line));
    } else if (const auto prompt = line.string("prompt")) {
      prompts.push_back(encode_prompt(files, *prompt, source));
    } else {
      throw Error(source + ": prompt or ids is needed");
    }
    check_prompt(prompts.back(), {.vocab_width = files.config.vocab_size, .context = context}, source);
  }
  if (prompts.empty()) throw Error(path + ": there are no prompts in it");
  return prompts;
}

std::vector<std::vector<std::int32_t>> built_in_prompts(const TargetFiles& files, std::int64_t context) {
  std::vector<std::vector<std::int32_t>> prompts;
  if (files.tokenizer) {
    for (const std::string& text : built_in_texts()) prompts.push_back(encode_prompt(files, text, "built-in prompt"));
  } else {
    const auto width = static_cast<std::uint64_t>(files.config.vocab_size);
    std::uint64_t draws = 0;
    for (int i = 0; i < kPrompts; ++i) {
      auto& prompt = prompts.emplace_back();
      for (int length = 1 + i * i; length > 0; --length) {
        prompt.push_back(static_cast<std::int32_t>(splitmix64(1, draws++) % width));
      }
    }
  }
  const auto longest = static_cast<std::size_t>(std::max<std::int64_t>(context / 2, 1));
  for (std::vector<std::int32_t>& prompt : prompts) prompt.resize(std::min(prompt.size(), longest));
  return prompts;
}

}  // namespace drafthorse

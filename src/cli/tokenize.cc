#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace drafthorse {
namespace {

struct TokenizeFlags {
  std::string folder;
  bool decode = false;
  bool jsonl = false;
};

std::string decoded_text(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  return replace_invalid_utf8(tokenizer.decode(ids));
}

/// Ids from one line of text or JSON: "1,2,3", "1 2 3", "[1, 2, 3]".
std::vector<std::int32_t> ids_of_line(std::string line, const std::string& where) {
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {};
  line = line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
  if (line.size() >= 2 && line.front() == '[' && line.back() == ']') line = line.substr(1, line.size() - 2);
  std::string list;  // separated by single commas
  for (const char c : line) {
    if (c != ' ' && c != '\t' && c != ',') {
      list += c;
    } else if (!list.empty() && list.back() != ',') {
      list += ',';
    }
  }
  if (!list.empty() && list.back() == ',') list.pop_back();
  return list.empty() ? std::vector<std::int32_t>() : parse_ids(list, where);
}

void answer_line(const Tokenizer& tokenizer, const TokenizeFlags& flags, const std::string& line,
                 const std::string& where) {
  const Json input = parse_json(line, where);
  const JsonObject object(input, where);
  std::vector<std::int32_t> ids;
  if (flags.decode) {
    ids = ids_of_json(object);
  } else {
    const auto text = object.string("text");
    if (!text) object.fail("text", "a string is needed");
    ids = tokenizer.encode(*text);
  }
  const Json output = {{"ids", ids}, {"decoded", decoded_text(tokenizer, ids)}};
  print_json_line(output);
}

int tokenize(const TokenizeFlags& flags) {
  const std::unique_ptr<Tokenizer> tokenizer = Tokenizer::load(flags.folder);
  if (!flags.jsonl && !flags.decode) {
    std::string list;
    const std::string text = read_standard_input();
    require_utf8(text, "standard input");
    for (const std::int32_t id : tokenizer->encode(text)) {
      if (!list.empty()) list += ',';
      list += std::to_string(id);
    }
    std::printf("%s\n", list.c_str());
    return kExitOk;
  }
  std::string line;
  for (std::int64_t number = 1; std::getline(std::cin, line); ++number) {
    const std::string where = "standard input, line " + std::to_string(number);
    if (flags.jsonl) {
      if (line.find_first_not_of(" \t\r") != std::string::npos) answer_line(*tokenizer, flags, line, where);
    } else {
      std::printf("%s\n", decoded_text(*tokenizer, ids_of_line(line, where)).c_str());
    }
    if (std::ferror(stdout) != 0) break;  // the reader is gone
  }
  return kExitOk;
}

}  // namespace

Command add_tokenize_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("tokenize", "text to token ids, and back");
  auto flags = std::make_shared<TokenizeFlags>();
  command->add_option("MODEL", flags->folder, "folder with tokenizer.json")->required()->type_name("DIR");
  command->add_flag("--decode", flags->decode, "ids in, text out, a line each");
  command->add_flag(
      "--jsonl", flags->jsonl,
      "one {\"text\": ..} a line in ({\"ids\": ..} with --decode), one {\"ids\": .., \"decoded\": ..} out");
  command->footer(
      "Reads standard input. No BOS or EOS is added; special tokens in the text are recognised and kept.\n"
      "Example:\n  printf 'hello world' | drafthorse tokenize models/demo/target");
  return {command, [flags] { return tokenize(*flags); }};
}

}  // namespace drafthorse

#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "tokenizer/component.h"
#include "tokenizer/token_table.h"
#include "tokenizer/unicode_class.h"
#include "tokenizer/utf8.h"

namespace drafthorse {
namespace {

/// Start of the code point that ends before `position` (> 0).
std::size_t previous_boundary(std::string_view text, std::size_t position) {
  do --position;
  while (position > 0 && (static_cast<unsigned char>(text[position]) & 0xC0) == 0x80);
  return position;
}

bool word_before(std::string_view text, std::size_t position) {
  if (position == 0) return false;
  std::size_t start = previous_boundary(text, position);
  return is_word_character(next_code_point(text, start));
}

bool word_at(std::string_view text, std::size_t position) {
  return position < text.size() && is_word_character(next_code_point(text, position));
}

std::size_t skip_spaces_left(std::string_view text, std::size_t position, std::size_t floor) {
  while (position > floor) {
    const std::size_t start = previous_boundary(text, position);
    std::size_t end = start;
    if (!is_white_space(next_code_point(text, end))) break;
    position = start;
  }
  return position;
}

std::size_t skip_spaces_right(std::string_view text, std::size_t position) {
  while (position < text.size()) {
    std::size_t end = position;
    if (!is_white_space(next_code_point(text, end))) break;
    position = end;
  }
  return position;
}

}  // namespace

std::vector<AddedToken> read_added_tokens(const Json& list, const std::string& source) {
  std::vector<AddedToken> tokens;
  if (list.is_null()) return tokens;
  if (!list.is_array()) throw Error(source + ": added_tokens = " + brief(list) + ": must be a list");

  std::set<std::int32_t> ids;
  std::set<std::string> contents;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string where = "added_tokens[" + std::to_string(i) + "].";
    const JsonObject entry(list[i], source, where);
    static const std::set<std::string> kKeys = {"id",     "content",    "single_word", "lstrip",
                                                "rstrip", "normalized", "special"};
    for (const auto& [key, value] : list[i].items()) {
      if (!kKeys.contains(key)) entry.fail(key, "unknown option of an added token");
    }
    AddedToken token;
    const auto id = entry.integer("id");
    if (!id || *id < 0 || *id >= TokenTable::kIdLimit) entry.fail("id", "must be a token id from 0 to 16777215");
    token.id = static_cast<std::int32_t>(*id);
    token.content = entry.string("content").value_or("");
    if (token.content.empty()) entry.fail("content", "missing or empty");
    token.single_word = entry.boolean("single_word").value_or(false);
    token.lstrip = entry.boolean("lstrip").value_or(false);
    token.rstrip = entry.boolean("rstrip").value_or(false);
    token.special = entry.boolean("special").value_or(false);
    token.normalized = entry.boolean("normalized").value_or(!token.special);
    if (!ids.insert(token.id).second) entry.fail("id", "listed twice in added_tokens");
    if (!contents.insert(token.content).second) entry.fail("content", "listed twice in added_tokens");
    tokens.push_back(std::move(token));
  }
  return tokens;
}

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(), [](const auto& a, const auto& b) { return a.content < b.content; });
  for (std::uint32_t i = 0; i < tokens_.size(); ++i) {
    auto& [begin, end] = by_first_byte_[static_cast<unsigned char>(tokens_[i].content[0])];
    if (begin == end) begin = i;
    end = i + 1;
  }
}

const AddedToken* AddedTokenMatcher::longest_at(std::string_view text, std::size_t position) const {
  const auto [first, last] = by_first_byte_[static_cast<unsigned char>(text[position])];
  if (first == last) return nullptr;
  // tokens_[begin, end) share their first `depth` bytes with the text; each further byte narrows the range.
  const AddedToken* longest = nullptr;
  auto begin = tokens_.begin() + first;
  auto end = tokens_.begin() + last;
  for (std::size_t depth = 1;; ++depth) {
    if (begin->content.size() == depth) longest = &*begin++;
    if (begin == end || position + depth >= text.size()) return longest;
    const auto byte = static_cast<unsigned char>(text[position + depth]);
    const auto at = [depth](const AddedToken& token) { return static_cast<unsigned char>(token.content[depth]); };
    begin = std::partition_point(begin, end, [&](const AddedToken& token) { return at(token) < byte; });
    end = std::partition_point(begin, end, [&](const AddedToken& token) { return at(token) == byte; });
    if (begin == end) return longest;
  }
}

void AddedTokenMatcher::split(std::string_view text, std::vector<Part>& parts) const {
  const auto emit_text = [&](std::size_t begin, std::size_t end) {
    if (begin < end) parts.push_back({text.substr(begin, end - begin), -1});
  };
  std::size_t covered = 0;    // the last token reached up to here
  std::size_t position = 0;   // contents are looked for from here on
  std::size_t space_end = 0;  // the last run of white space that an rstrip swallowed ends here
  while (!tokens_.empty() && position < text.size()) {
    const AddedToken* token = longest_at(text, position);
    if (token == nullptr) {
      ++position;  // contents start with a lead byte, so the middle of a code point never matches
      continue;
    }
    std::size_t begin = position;
    std::size_t end = position + token->content.size();
    position = end;
    if (token->single_word && (word_before(text, begin) || word_at(text, end))) continue;
    // rstrip does not hide white space from other tokens: one found inside is a token again, and the text goes on
    // behind it. That is what the Hugging Face tokenizers do, and ids must be theirs.
    if (token->lstrip) begin = skip_spaces_left(text, begin, covered);
    if (token->rstrip) end = space_end = skip_spaces_right(text, std::max(end, space_end));
    emit_text(covered, begin);
    parts.push_back({text.substr(begin, end - begin), token->id});
    covered = end;
  }
  emit_text(covered, text.size());
}

}  // namespace drafthorse

#include "tokenizer/bpe.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/utf8.h"

namespace drafthorse {
namespace {

constexpr std::uint32_t kEnd = UINT32_MAX;
// Up to this many symbols a scan for the lowest rank beats a heap; words of prose are far below it.
constexpr std::size_t kShort = 32;
constexpr std::size_t kBasicPlane = 0x10000;

bool comes_later(const Bpe::Scratch::Candidate& a, const Bpe::Scratch::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
}

std::string in_quotes(std::string_view text) { return brief(Json(std::string(text))); }

std::string_view first_character(std::string_view text) {
  std::size_t end = 0;
  next_code_point(text, end);
  return text.substr(0, end);
}

std::string_view last_character(std::string_view text) {
  std::size_t start = text.size() - 1;
  while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
  return text.substr(start);
}

}  // namespace

void Bpe::JoinFilter::resize(std::size_t merges) {
  const std::size_t bits = std::bit_ceil(std::max<std::size_t>(merges * 4, 64));
  words_.assign(bits / 64, 0);
  mask_ = bits - 1;
}

Bpe::Bpe(const TokenTable& vocab, const MergeList& merges, const BpeOptions& options, std::vector<std::int32_t> control,
         const std::string& source)
    : vocab_(vocab), options_(options) {
  for (const std::int32_t id : control) control_.emplace(id, std::pair(-1, -1));
  read_symbols();
  if (options_.byte_level && !options_.unk) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (symbols_[byte] >= 0) continue;
      std::string character;
      append_utf8(character, code_point_of_byte(static_cast<std::uint8_t>(byte)));
      throw Error(source + ": model.vocab: no token " + in_quotes(character) + " for byte " + std::to_string(byte) +
                  ": a byte-level vocabulary needs all 256");
    }
  }
  read_merges(merges, source);
}

void Bpe::read_symbols() {
  fallback_.fill(-1);
  if (options_.byte_level) {
    symbols_.assign(256, -1);
    for (std::size_t byte = 0; byte < 256; ++byte) {
      std::string character;
      append_utf8(character, code_point_of_byte(static_cast<std::uint8_t>(byte)));
      symbols_[byte] = vocab_.find(character).value_or(-1);
    }
    return;
  }
  symbols_.assign(kBasicPlane, -1);
  for (std::int32_t id = 0; id < vocab_.id_end(); ++id) {
    if (!vocab_.has(id)) continue;
    const std::string_view content = vocab_.content(id);
    if (content.empty() || content.size() > 3) continue;
    std::size_t end = 0;
    const std::uint32_t code_point = next_code_point(content, end);
    if (end == content.size()) symbols_[code_point] = id;
  }
  for (std::size_t byte = 0; byte < 256; ++byte) {
    fallback_[byte] = vocab_.find(fallback_token_of_byte(static_cast<std::uint8_t>(byte))).value_or(-1);
  }
}

void Bpe::read_merges(const MergeList& merges, const std::string& source) {
  merges_.reserve(merges.size());
  joins_.resize(merges.size());
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto id_of = [&](std::string_view token) {
      const auto id = vocab_.find(token);
      if (!id) {
        throw Error(source + ": model.merges[" + std::to_string(rank) + "] = [" + in_quotes(merges.left(rank)) + ", " +
                    in_quotes(merges.right(rank)) + "]: " + in_quotes(token) + " is not in model.vocab");
      }
      return *id;
    };
    const std::int32_t left = id_of(merges.left(rank));
    const std::int32_t right = id_of(merges.right(rank));
    const std::int32_t result = id_of(merges.joined(rank));
    merges_.set(left, right, {static_cast<std::uint32_t>(rank), result});
    add_joins({merges.left(rank), left}, {merges.right(rank), right});
    if (const auto known = control_.find(result); known != control_.end()) known->second = {left, right};
  }
}

void Bpe::add_joins(const Part& left, const Part& right) {
  // A merge joins the last first-symbol of its left part to the first one of its right part. A part that can itself be
  // a first symbol, although it is longer than a character (a byte or the unk token), counts as such too.
  const auto symbols = [&](const Part& part, std::string_view character) {
    std::size_t end = 0;
    const std::uint32_t code_point = next_code_point(character, end);
    std::int32_t symbol;
    if (options_.byte_level) {
      const auto byte = byte_of_code_point(code_point);
      symbol = byte ? symbols_[*byte] : -1;
    } else {
      symbol = symbol_of(code_point, character);
    }
    const bool is_symbol = part.id == options_.unk || (options_.byte_fallback && byte_of_fallback_token(part.text));
    return std::array<std::int32_t, 2>{symbol, is_symbol ? part.id : -1};
  };
  for (const std::int32_t a : symbols(left, last_character(left.text))) {
    for (const std::int32_t b : symbols(right, first_character(right.text))) {
      if (a >= 0 && b >= 0) joins_.add(a, b);
    }
  }
}

std::int32_t Bpe::symbol_of(std::uint32_t code_point, std::string_view character) const {
  return code_point < kBasicPlane ? symbols_[code_point] : vocab_.find(character).value_or(-1);
}

void Bpe::first_symbols(std::string_view piece, std::vector<std::int32_t>& ids) const {
  ids.clear();
  bool after_unknown = false;
  const auto unknown = [&] {
    if (options_.unk && !(after_unknown && options_.fuse_unk)) ids.push_back(*options_.unk);
    after_unknown = true;
  };
  if (options_.byte_level) {
    for (const char byte : piece) {
      const std::int32_t id = symbols_[static_cast<unsigned char>(byte)];
      id >= 0 ? ids.push_back(id) : unknown();
      after_unknown = id < 0;
    }
    return;
  }
  for (std::size_t position = 0; position < piece.size();) {
    const std::size_t start = position;
    const std::uint32_t code_point = next_code_point(piece, position);
    const std::string_view character = piece.substr(start, position - start);
    if (const std::int32_t id = symbol_of(code_point, character); id >= 0) {
      ids.push_back(id);
      after_unknown = false;
      continue;
    }
    const auto fallback = [&](char byte) { return fallback_[static_cast<unsigned char>(byte)]; };
    if (options_.byte_fallback &&
        std::all_of(character.begin(), character.end(), [&](char byte) { return fallback(byte) >= 0; })) {
      for (const char byte : character) ids.push_back(fallback(byte));
      after_unknown = false;
    } else {
      unknown();
    }
  }
}

void Bpe::encode(std::string_view piece, bool allow_control, Scratch& scratch, std::vector<std::int32_t>& ids) const {
  DRAFTHORSE_CHECK(piece.size() <= std::size_t{1} << 30);
  if (options_.ignore_merges) {
    if (options_.byte_level) scratch.text = to_byte_alphabet(piece);
    const auto whole = vocab_.find(options_.byte_level ? std::string_view(scratch.text) : piece);
    if (whole && (allow_control || !control_.contains(*whole))) {
      ids.push_back(*whole);
      return;
    }
  }
  const std::size_t from = ids.size();
  first_symbols(piece, scratch.ids);
  // Where neighbours can never be joined the text falls apart into words that merge on their own, with the same result.
  // This keeps the SentencePiece kind, whose pieces are whole texts, as fast as the kind that is cut beforehand.
  const std::span<const std::int32_t> symbols(scratch.ids);
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= symbols.size(); ++i) {
    if (i < symbols.size() && joins_.may_join(symbols[i - 1], symbols[i])) continue;
    merge(symbols.subspan(begin, i - begin), scratch, ids);
    begin = i;
  }
  if (!allow_control && !control_.empty()) replace_control(ids, from);
}

void Bpe::merge(std::span<const std::int32_t> symbols, Scratch& scratch, std::vector<std::int32_t>& ids) const {
  if (symbols.size() == 1) {
    ids.push_back(symbols[0]);
  } else if (symbols.size() <= kShort) {
    merge_short(symbols, ids);
  } else {
    merge_long(symbols, scratch, ids);
  }
}

void Bpe::merge_short(std::span<const std::int32_t> symbols, std::vector<std::int32_t>& ids) const {
  std::array<std::int32_t, kShort> id;
  std::array<Merge, kShort> pair;  // pair[i] joins id[i] and id[i + 1]
  std::size_t count = symbols.size();
  std::copy(symbols.begin(), symbols.end(), id.begin());
  for (std::size_t i = 0; i + 1 < count; ++i) pair[i] = merges_.find(id[i], id[i + 1]);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (pair[i].rank < pair[best].rank) best = i;
    }
    if (!pair[best]) break;
    id[best] = pair[best].result;
    std::copy(id.begin() + best + 2, id.begin() + count, id.begin() + best + 1);
    std::copy(pair.begin() + best + 1, pair.begin() + count - 1, pair.begin() + best);
    --count;
    if (best + 1 < count) pair[best] = merges_.find(id[best], id[best + 1]);
    if (best > 0) pair[best - 1] = merges_.find(id[best - 1], id[best]);
  }
  ids.insert(ids.end(), id.begin(), id.begin() + count);
}

void Bpe::merge_long(std::span<const std::int32_t> symbols, Scratch& scratch, std::vector<std::int32_t>& ids) const {
  auto& list = scratch.symbols;
  auto& heap = scratch.heap;
  list.resize(symbols.size());
  heap.clear();
  const auto candidate = [&](std::uint32_t left, std::uint32_t right) -> std::optional<Scratch::Candidate> {
    const Merge merge = merges_.find(list[left].id, list[right].id);
    if (!merge) return std::nullopt;
    return Scratch::Candidate{merge.rank, left, list[left].id, list[right].id, merge.result};
  };
  const auto count = static_cast<std::uint32_t>(symbols.size());
  for (std::uint32_t i = 0; i < count; ++i) list[i] = {symbols[i], i - 1, i + 1 < count ? i + 1 : kEnd};
  list[0].previous = kEnd;
  for (std::uint32_t i = 0; i + 1 < count; ++i) {
    if (const auto found = candidate(i, i + 1)) heap.push_back(*found);
  }
  std::make_heap(heap.begin(), heap.end(), comes_later);
  const auto push = [&](std::uint32_t left, std::uint32_t right) {
    const auto found = candidate(left, right);
    if (!found) return;
    heap.push_back(*found);
    std::push_heap(heap.begin(), heap.end(), comes_later);
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), comes_later);
    const Scratch::Candidate best = heap.back();
    heap.pop_back();
    auto& left = list[best.position];
    // Stale: one of the two was joined to something else since.
    if (left.id != best.left || left.next == kEnd || list[left.next].id != best.right) continue;
    auto& right = list[left.next];
    left.id = best.result;
    left.next = right.next;
    right.id = -1;
    if (left.next != kEnd) {
      list[left.next].previous = best.position;
      push(best.position, left.next);
    }
    if (left.previous != kEnd) push(left.previous, best.position);
  }
  for (std::uint32_t i = 0; i != kEnd; i = list[i].next) ids.push_back(list[i].id);
}

void Bpe::replace_control(std::vector<std::int32_t>& ids, std::size_t from) const {
  const auto is_merged_control = [&](std::int32_t id) {
    const auto known = control_.find(id);
    return known != control_.end() && known->second.first >= 0;
  };
  if (std::none_of(ids.begin() + static_cast<std::ptrdiff_t>(from), ids.end(), is_merged_control)) return;
  std::vector<std::int32_t> pending(ids.rbegin(), ids.rend() - static_cast<std::ptrdiff_t>(from));
  ids.resize(from);
  while (!pending.empty()) {
    const std::int32_t id = pending.back();
    pending.pop_back();
    if (is_merged_control(id)) {
      const auto [left, right] = control_.at(id);
      pending.push_back(right);
      pending.push_back(left);
    } else {
      ids.push_back(id);
    }
  }
}

std::vector<std::int32_t> Bpe::by_merge_rank() const {
  // 0 for what no merge makes: a rank r counts as r + 1.
  std::vector<std::uint32_t> order(static_cast<std::size_t>(vocab_.id_end()), 0);
  merges_.for_each([&](const Merge& merge) {
    std::uint32_t& at = order[static_cast<std::size_t>(merge.result)];
    at = at == 0 ? merge.rank + 1 : std::min(at, merge.rank + 1);
  });
  std::vector<std::int32_t> ids;
  for (std::int32_t id = 0; id < vocab_.id_end(); ++id) {
    if (vocab_.has(id)) ids.push_back(id);
  }
  std::stable_sort(ids.begin(), ids.end(), [&](std::int32_t a, std::int32_t b) {
    return order[static_cast<std::size_t>(a)] < order[static_cast<std::size_t>(b)];
  });
  return ids;
}

}  // namespace drafthorse

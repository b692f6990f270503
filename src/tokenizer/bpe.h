#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tokenizer/merge_list.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/token_table.h"

namespace drafthorse {

struct BpeOptions {
  bool byte_level = false;          ///< pieces are bytes, tokens are spelled in the byte-level alphabet
  bool ignore_merges = false;       ///< a piece that is a token as a whole is that token
  bool byte_fallback = false;       ///< a character outside the vocabulary becomes its bytes, `<0xNN>` each
  bool fuse_unk = false;            ///< neighbouring unknown characters become one unk
  std::optional<std::int32_t> unk;  ///< for characters outside the vocabulary; without it they are dropped
};

/// Byte-pair encoding (Sennrich et al. 2016) of one piece of text. Immutable; shared by threads.
class Bpe {
 public:
  /// `vocab` must outlive this. `control` are ids that encode() can be told to avoid. Throws Error starting with
  /// `source` when a merge's parts or result are not in `vocab`, or a byte-level vocabulary without unk lacks one of
  /// the 256 bytes.
  Bpe(const TokenTable& vocab, const MergeList& merges, const BpeOptions& options, std::vector<std::int32_t> control,
      const std::string& source);

  /// Working memory of one thread; reuse it across pieces.
  struct Scratch {
    struct Symbol {
      std::int32_t id;  // -1: merged into its left neighbour
      std::uint32_t previous;
      std::uint32_t next;
    };
    struct Candidate {
      std::uint32_t rank;
      std::uint32_t position;
      std::int32_t left;
      std::int32_t right;
      std::int32_t result;
    };
    std::vector<std::int32_t> ids;
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
    std::string text;
  };

  /// Appends the ids of `piece` (valid UTF-8, at most 2^30 bytes): of all neighbouring pairs the one of lowest rank is
  /// joined first, the leftmost of equals, until none is left. O(n log n). Without `allow_control` a control id is
  /// replaced by the parts it was merged from, so that no text can spell a control token.
  void encode(std::string_view piece, bool allow_control, Scratch& scratch, std::vector<std::int32_t>& ids) const;

  /// Every token of the vocabulary in the order merging can make it: those no merge makes (bytes, characters) by id,
  /// then the others by the lowest rank of a merge that makes them.
  std::vector<std::int32_t> by_merge_rank() const;

 private:
  /// Which neighbours of first symbols can ever be joined: a filter that may say yes for no, never no for yes.
  class JoinFilter {
   public:
    void resize(std::size_t merges);
    void add(std::int32_t left, std::int32_t right) { words_[bit(left, right) >> 6] |= bit_of(bit(left, right)); }
    bool may_join(std::int32_t left, std::int32_t right) const {
      return (words_[bit(left, right) >> 6] & bit_of(bit(left, right))) != 0;
    }

   private:
    static std::uint64_t bit_of(std::size_t bit) { return std::uint64_t{1} << (bit & 63); }
    std::size_t bit(std::int32_t left, std::int32_t right) const {
      const std::uint64_t key =
          std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
      std::uint64_t mixed = key * 0x9E3779B97F4A7C15U;
      mixed ^= mixed >> 32;
      return (mixed * 0xD6E8FEB86659FD93U >> 24) & mask_;
    }
    std::vector<std::uint64_t> words_;
    std::size_t mask_ = 0;
  };

  void read_symbols();
  void read_merges(const MergeList& merges, const std::string& source);
  struct Part {
    std::string_view text;
    std::int32_t id;
  };
  void add_joins(const Part& left, const Part& right);
  std::int32_t symbol_of(std::uint32_t code_point, std::string_view character) const;
  void first_symbols(std::string_view piece, std::vector<std::int32_t>& ids) const;
  void merge(std::span<const std::int32_t> symbols, Scratch& scratch, std::vector<std::int32_t>& ids) const;
  void merge_short(std::span<const std::int32_t> symbols, std::vector<std::int32_t>& ids) const;
  void merge_long(std::span<const std::int32_t> symbols, Scratch& scratch, std::vector<std::int32_t>& ids) const;
  void replace_control(std::vector<std::int32_t>& ids, std::size_t from) const;

  const TokenTable& vocab_;
  BpeOptions options_;
  MergeTable merges_;
  JoinFilter joins_;
  std::vector<std::int32_t> symbols_;         // id by code point (by byte when byte_level), -1: none
  std::array<std::int32_t, 256> fallback_{};  // id of `<0xNN>`, -1: none
  std::unordered_map<std::int32_t, std::pair<std::int32_t, std::int32_t>>
      control_;  // id -> parts ({-1, -1}: not made by a merge)
};

}  // namespace drafthorse

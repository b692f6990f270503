#include "quant/weight_type.h"

#include "base/check.h"
#include "quant/bit_format.h"

namespace drafthorse {
namespace {

struct Entry {
  std::string_view name;
  std::int64_t block_groups;
  std::size_t block_bytes;       ///< of a tile
  std::size_t file_block_bytes;  ///< of a row; 0 where files have no blocks
};

constexpr std::size_t kGroupElements = kTileRows * kGroup;

template <typename Format>
constexpr Entry entry(std::string_view name, std::size_t file_block_bytes) {
  return {name, Format::kBlockGroups, Format::kBlockBytes, file_block_bytes};
}

constexpr std::array<Entry, kWeightTypes.size()> kEntries = {{
    {"f32", 1, kGroupElements * 4, 0},
    {"f16", 1, kGroupElements * 2, 0},
    {"bf16", 1, kGroupElements * 2, 0},
    {"q8_0", 1, kTileRows * 2 + kGroupElements, 34},
    entry<Q4_0Format>("q4_0", 18),
    entry<Q4_1Format>("q4_1", 20),
    entry<Q5_0Format>("q5_0", 22),
    entry<Q5_1Format>("q5_1", 24),
    entry<Q4KFormat>("q4_k", 144),
    entry<Q5KFormat>("q5_k", 176),
    entry<Q6KFormat>("q6_k", 210),
}};

constexpr const Entry& entry_of(WeightType type) { return kEntries[static_cast<std::size_t>(type)]; }

/// What kernel order adds to a file's bytes: 6-bit scales become whole bytes, nothing else.
constexpr bool within_a_tenth_of_files() {
  for (const Entry& e : kEntries) {
    if (e.block_bytes % 64 != 0) return false;  // every block starts a cache line
    if (e.file_block_bytes != 0 && e.block_bytes * 10 > e.file_block_bytes * kTileRows * 11) return false;
  }
  return true;
}
static_assert(within_a_tenth_of_files());

}  // namespace

std::string_view weight_name(WeightType type) { return entry_of(type).name; }

std::optional<WeightType> weight_type(std::string_view name) {
  for (const WeightType type : kWeightTypes) {
    if (weight_name(type) == name) return type;
  }
  return std::nullopt;
}

std::string weight_names() {
  std::string names;
  for (const Entry& e : kEntries) names += (names.empty() ? "" : ", ") + std::string(e.name);
  return names;
}

std::int64_t block_groups(WeightType type) { return entry_of(type).block_groups; }

std::int64_t padded_groups(WeightType type, std::int64_t cols) {
  const std::int64_t block = block_groups(type);
  return (cols + block * kGroup - 1) / (block * kGroup) * block;
}

std::size_t group_bytes(WeightType type) {
  return entry_of(type).block_bytes / static_cast<std::size_t>(entry_of(type).block_groups);
}

bool is_quantized(WeightType type) { return entry_of(type).file_block_bytes != 0; }

std::int64_t file_block_cols(WeightType type) {
  DRAFTHORSE_CHECK(is_quantized(type), weight_name(type) << " has no blocks");
  return block_groups(type) * kGroup;
}

std::size_t file_block_bytes(WeightType type) {
  DRAFTHORSE_CHECK(is_quantized(type), weight_name(type) << " has no blocks");
  return entry_of(type).file_block_bytes;
}

}  // namespace drafthorse

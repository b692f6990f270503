#include "quant/weight_type.h"

#include <array>

namespace drafthorse {
namespace {

struct Entry {
  std::string_view name;
  std::size_t group_bytes;
};

constexpr std::size_t kGroupElements = kTileRows * kGroup;
constexpr std::array<Entry, 4> kEntries = {{{"f32", kGroupElements * 4},
                                            {"f16", kGroupElements * 2},
                                            {"bf16", kGroupElements * 2},
                                            {"q8_0", kTileRows * 2 + kGroupElements}}};

}  // namespace

std::string_view weight_name(WeightType type) { return kEntries[static_cast<std::size_t>(type)].name; }

std::optional<WeightType> weight_type(std::string_view name) {
  for (std::size_t i = 0; i < kEntries.size(); ++i) {
    if (kEntries[i].name == name) return static_cast<WeightType>(i);
  }
  return std::nullopt;
}

std::size_t group_bytes(WeightType type) { return kEntries[static_cast<std::size_t>(type)].group_bytes; }

}  // namespace drafthorse

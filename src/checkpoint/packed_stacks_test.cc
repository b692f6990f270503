#include "checkpoint/packed_stacks.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"
#include "quant/packed_matrix.h"
#include "support/error_text.h"
#include "support/safetensors_bytes.h"
#include "support/temp_folder.h"

namespace drafthorse {
namespace {

SafetensorsFile parse(const std::string& file) {
  return parse_safetensors(std::as_bytes(std::span(file.data(), file.size())), "w.safetensors");
}

/// A file with a bf16 stack of 32 x 32 (2048 bytes), a second stream of the same size and a plain vector "n" of 2
/// floats; `description` is the value of the metadata key.
std::string file_of(const std::string& description, std::size_t extra_spaces = 0) {
  Json header;
  header["__metadata__"][std::string(kPackedKey)] = description;
  header["packed.0"] = {{"dtype", "U8"}, {"shape", {2048}}, {"data_offsets", {0, 2048}}};
  header["packed.1"] = {{"dtype", "U8"}, {"shape", {2048}}, {"data_offsets", {2048, 4096}}};
  header["n"] = {{"dtype", "F32"}, {"shape", {2}}, {"data_offsets", {4096, 4104}}};
  std::string text = header.dump();
  while ((8 + text.size()) % 64 != 0) text += ' ';
  return safetensors_bytes(text + std::string(extra_spaces, ' '), std::string(4104, '\0'));
}

std::string part(const char* name, int rows, int first, int total) {
  return Json{{"name", name}, {"rows", rows}, {"first", first}, {"total", total}}.dump();
}

std::string stack(const std::string& tensor, const std::string& parts, const char* type = "bf16", int cols = 32) {
  return R"({"tensor":")" + tensor + R"(","type":")" + type + R"(","cols":)" + std::to_string(cols) + R"(,"parts":[)" +
         parts + "]}";
}

std::string layout(const std::string& stacks, const char* number = "1") {
  return std::string(R"({"layout":)") + number + R"(,"stacks":[)" + stacks + "]}";
}

const std::string kQ = part("q", 24, 0, 24);
const std::string kK = part("k", 8, 0, 8);
const std::string kGood = stack("packed.0", kQ + "," + kK) + "," + stack("packed.1", part("d", 32, 8, 40));

TEST(PackedStacks, MatricesTakeThePlaceOfTheirStreams) {
  const std::string file = file_of(layout(kGood));
  const SafetensorsFile parsed = parse(file);
  ASSERT_EQ(parsed.stacks.size(), 2u);
  EXPECT_EQ(parsed.stacks[0].type, WeightType::kBF16);
  EXPECT_EQ(parsed.stacks[0].rows(), 32);
  EXPECT_EQ(parsed.stacks[0].bytes.size(), 2048u);
  EXPECT_EQ(parsed.stacks[1].parts, (std::vector<StackPart>{{"d", 32, 8, 40}}));
  std::vector<std::string> texts;
  for (const TensorView& view : parsed.tensors)
    texts.push_back(view.name + " " + view.type_text() + " " + shape_text(view.shape));
  EXPECT_EQ(texts, (std::vector<std::string>{"n F32 [2]", "d BF16 [40, 32]", "k BF16 [8, 32]", "q BF16 [24, 32]"}));
  // Bytes without what pads a stack: 8 rows of 32 columns at 2 bytes.
  EXPECT_EQ(parsed.tensors[2].stored_bytes(), 512u);
}

TEST(PackedStacks, AMatrixThatIsThereInPlainFormTooStaysPlain) {
  const SafetensorsFile parsed = parse(file_of(layout(stack("packed.0", part("n", 32, 0, 32)))));
  for (const TensorView& view : parsed.tensors) EXPECT_FALSE(view.packed) << view.name;
  EXPECT_EQ(parsed.tensors.size(), 2u);  // n, and the stream that no stack uses
}

TEST(PackedStacks, WhatIsWrittenIsReadBack) {
  const TempFolder folder;
  std::vector<PackedStack> stacks(2);
  stacks[0] = {
      .type = WeightType::kQ8_0, .cols = 33, .parts = {{"a \"quoted\"", 5, 0, 5}, {"b", 7, 2, 90}}, .bytes = {}};
  stacks[1] = {.type = WeightType::kQ4K, .cols = 300, .parts = {{"c", 40, 0, 40}}, .bytes = {}};
  std::vector<TensorPlan> plans;
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    const auto bytes = packed_bytes(stacks[i].type, stacks[i].rows(), stacks[i].cols);
    plans.push_back({stack_tensor(i), ElementType::kU8, {static_cast<std::int64_t>(bytes)}});
  }
  plans.push_back({"norm", ElementType::kF32, {3}});
  SafetensorsWriter writer(folder / "w.safetensors", plans,
                           {{std::string(kPackedKey), describe_packed_stacks(stacks)}});
  for (std::size_t i = 0; i < plans.size(); ++i) {
    writer.write(std::vector<std::byte>(plans[i].bytes(), static_cast<std::byte>(i + 1)));
  }
  writer.finish();
  const auto source = open_safetensors(folder / "w.safetensors");
  ASSERT_EQ(source->stacks().size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const PackedStack& found = source->stacks()[i];
    EXPECT_EQ(source->find_stack(stacks[i].parts), &found);
    EXPECT_EQ(found.type, stacks[i].type);
    EXPECT_EQ(found.cols, stacks[i].cols);
    EXPECT_EQ(found.bytes[0], static_cast<std::byte>(i + 1));
    ASSERT_NE(found.file, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found.bytes.data()) % 64, 0u);
  }
  EXPECT_EQ(source->find_stack(std::vector<StackPart>{{"b", 7, 2, 90}}), nullptr);
  EXPECT_EQ(source->names(), (std::vector<std::string>{"a \"quoted\"", "b", "c", "norm"}));
}

TEST(SafetensorsWriter, LeavesNothingBehindUnlessItFinishes) {
  const TempFolder folder;
  const std::vector<TensorPlan> plans = {{"a", ElementType::kF32, {4}}};
  { SafetensorsWriter writer(folder / "w.safetensors", plans, {}); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  expect_error([&] { SafetensorsWriter(folder / "none/w.safetensors", plans, {}); },
               {"none/w.safetensors", "cannot be made"});
}

struct BadPacked {
  const char* name;
  std::string description;
  std::vector<const char*> texts;
};

class PackedStacksRefuse : public testing::TestWithParam<BadPacked> {};

TEST_P(PackedStacksRefuse, WithOneLineThatSaysWhere) {
  const std::string text = error_text([&] { parse(file_of(GetParam().description)); });
  EXPECT_TRUE(text.starts_with("w.safetensors: ")) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
  for (const char* expected : GetParam().texts) EXPECT_NE(text.find(expected), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(
    Descriptions, PackedStacksRefuse,
    testing::Values(
        BadPacked{"NoJson", "{", {"drafthorse.packed"}}, BadPacked{"NoObject", "[]", {"drafthorse.packed"}},
        BadPacked{"NoLayout", R"({"stacks":[]})", {"layout", "missing"}},
        BadPacked{"NewerLayout", layout(kGood, "2"), {"layout", "this version reads layout 1", "quantize"}},
        BadPacked{"NoStacks", layout(""), {"stacks", "list"}},
        BadPacked{"UnknownTensor", layout(stack("packed.9", kQ)), {"stacks[0].tensor", "packed.9"}},
        BadPacked{"TensorTwice",
                  layout(stack("packed.0", part("a", 32, 0, 32)) + "," + stack("packed.0", part("b", 32, 0, 32))),
                  {"stacks[1].tensor"}},
        BadPacked{"UnknownType", layout(stack("packed.0", kQ, "q3_k")), {"stacks[0].type", "q3_k", "q4_k"}},
        BadPacked{"WrongSize", layout(stack("packed.0", part("q", 33, 0, 33))), {"stacks[0].tensor", "2048", "4096"}},
        BadPacked{"WrongElements", layout(stack("n", part("q", 32, 0, 32))), {"stacks[0].tensor", "F32", "U8"}},
        BadPacked{"NoColumns", layout(stack("packed.0", kQ, "bf16", 0)), {"stacks[0].cols"}},
        BadPacked{"HugeColumns", layout(stack("packed.0", kQ, "bf16", 2'000'000'000)), {"stacks[0].cols"}},
        BadPacked{"NoParts", layout(stack("packed.0", "")), {"stacks[0].parts"}},
        BadPacked{"RowsPastTheEnd", layout(stack("packed.0", part("q", 32, 9, 40))), {"parts[0].first"}},
        BadPacked{"NegativeFirst", layout(stack("packed.0", part("q", 32, -1, 40))), {"parts[0].first"}},
        BadPacked{"NoRows", layout(stack("packed.0", part("q", 0, 0, 40))), {"parts[0].rows"}},
        BadPacked{"TwoShapesOfOneMatrix",
                  layout(stack("packed.0", part("q", 32, 0, 64)) + "," + stack("packed.1", part("q", 32, 32, 65))),
                  {"stacks[1].parts", "another shape"}}),
    [](const auto& bad) { return std::string(bad.param.name); });

TEST(PackedStacks, AStreamAtAnOddPlaceIsRefused) {
  const std::string text = error_text([] { parse(file_of(layout(kGood), 8)); });
  EXPECT_NE(text.find("multiple of 64"), std::string::npos) << text;
}

}  // namespace
}  // namespace drafthorse

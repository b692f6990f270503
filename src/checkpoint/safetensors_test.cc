#include "checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/error_text.h"
#include "support/safetensors_bytes.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace drafthorse {
namespace {

using testing::ElementsAre;

std::vector<TensorView> parse(const std::string& file) {
  return parse_safetensors(std::as_bytes(std::span(file.data(), file.size())), "w.safetensors").tensors;
}

/// Expects that a file of this header and `data` zero bytes is refused with all of `parts` in the message.
void refuses(const std::string& header, std::size_t data, std::initializer_list<const char*> parts) {
  SCOPED_TRACE(header);
  const std::string file = safetensors_bytes(header, std::string(data, '\0'));
  const std::string text = error_text([&] { parse(file); });
  EXPECT_TRUE(text.starts_with("w.safetensors: ")) << text;
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}

const std::string kOne = R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";

TEST(Safetensors, ReadsNamesTypesShapesAndBytes) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"none":{"dtype":"I64","shape":[3,0],"data_offsets":[4,4]}})";
  const std::string file = safetensors_bytes(header + "   ", std::string("\1\2\3\4\5\6\7\10", 8));
  const auto views = parse(file);
  ASSERT_EQ(views.size(), 3u);
  EXPECT_EQ(views[0].name, "a");
  EXPECT_EQ(views[0].type, ElementType::kF32);
  EXPECT_TRUE(views[0].shape.empty());
  EXPECT_EQ(views[0].elements(), 1);
  EXPECT_EQ(views[1].name, "none");
  EXPECT_EQ(views[1].elements(), 0);
  EXPECT_EQ(views[2].name, "b");
  EXPECT_EQ(views[2].type, ElementType::kBF16);
  EXPECT_THAT(views[2].shape, ElementsAre(2));
  ASSERT_EQ(views[2].bytes.size(), 4u);
  EXPECT_EQ(views[2].bytes[0], std::byte{5});
}

TEST(Safetensors, AcceptsEmptyNullAndAbsentMetadata) {
  for (const char* metadata : {"{}", "null"}) {
    EXPECT_TRUE(parse(safetensors_bytes(std::string(R"({"__metadata__":)") + metadata + "}", "")).empty()) << metadata;
  }
  EXPECT_TRUE(parse(safetensors_bytes("{}", "")).empty());
}

TEST(Safetensors, RefusesMetadataThatIsNotText) {
  refuses(R"({"__metadata__":{"epoch":3}})", 0, {"__metadata__.epoch = 3"});
  refuses(R"({"__metadata__":[]})", 0, {"__metadata__", "[]"});
}

TEST(Safetensors, RefusesAFileCutByOneByteNamingTensorAndBytes) { refuses(kOne, 23, {"tensor \"a\"", "24", "23"}); }

TEST(Safetensors, RefusesAFileCutByAWholeTensor) {
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[5],"data_offsets":[4,9]}})";
  refuses(header, 4, {"tensor \"b\"", "9", "4"});
}

TEST(Safetensors, RefusesAFileOfEightBytesOrLess) {
  expect_error([] { parse(""); }, {"w.safetensors", "0 bytes"});
  expect_error([] { parse(std::string(7, '\0')); }, {"7 bytes"});
  expect_error([] { parse(safetensors_bytes(kOne, "").substr(0, 8)); }, {"header", "has 8"});
  expect_error([] { parse(std::string(8, '\0')); }, {"not valid JSON"});
}

TEST(Safetensors, RefusesAHeaderLongerThanTheFile) {
  const std::string whole = safetensors_bytes(kOne, "");
  expect_error([&] { parse(whole.substr(0, whole.size() - 1)); }, {"header of", std::to_string(whole.size()).c_str()});
}

TEST(Safetensors, RefusesAHeaderLengthOfTwoToThe63) {
  expect_error([] { parse(std::string(7, '\0') + '\x80' + "{}"); }, {"9223372036854775808", "limit"});
  expect_error([] { parse(std::string(8, '\xff') + "{}"); }, {"18446744073709551615", "limit"});
}

TEST(Safetensors, RefusesAHeaderThatIsNotAnObject) {
  refuses("[1,2]", 0, {"[1,2]", "object"});
  refuses("{\"a\":", 0, {"JSON"});
  refuses(R"({"a":7})", 0, {"tensor \"a\"", "7"});
}

TEST(Safetensors, RefusesADuplicateTensor) {
  const std::string entry = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  refuses("{" + entry + "," + entry + "}", 1, {"duplicate", "\"a\""});
}

TEST(Safetensors, RefusesEightBitFloatsByName) {
  for (const char* type : {"F8_E4M3", "F8_E5M2", "F8_E8M0", "F4"}) {
    refuses(std::string(R"({"a":{"dtype":")") + type + R"(","shape":[1],"data_offsets":[0,1]}})", 1,
            {"tensor \"a\"", type, "BF16"});
  }
}

TEST(Safetensors, RefusesUnknownAndMissingElementTypes) {
  refuses(R"({"a":{"dtype":"f32","shape":[1],"data_offsets":[0,4]}})", 4, {"tensor \"a\".dtype = \"f32\"", "unknown"});
  refuses(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, {"tensor \"a\".dtype", "missing"});
  refuses(R"({"a":{"dtype":5,"shape":[1],"data_offsets":[0,4]}})", 4, {"dtype = 5", "string"});
}

TEST(Safetensors, RefusesBadShapes) {
  refuses(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1, {"tensor \"a\".shape", "missing"});
  refuses(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1, {"[-1]", "negative"});
  refuses(R"({"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})", 1, {"[1.5]", "whole"});
  refuses(R"({"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}})", 1, {"shape"});
}

TEST(Safetensors, RefusesShapesWhoseProductOverflows) {
  refuses(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, {"4294967296", "2^40"});
  refuses(R"({"a":{"dtype":"U8","shape":[1099511627777],"data_offsets":[0,0]}})", 0, {"1099511627777", "2^40"});
  refuses(R"({"a":{"dtype":"U8","shape":[9223372036854775807,0],"data_offsets":[0,0]}})", 0, {"2^40"});
}

TEST(Safetensors, RefusesBadOffsets) {
  refuses(R"({"a":{"dtype":"U8","shape":[1]}})", 1, {"tensor \"a\".data_offsets", "missing"});
  refuses(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", 1, {"[1,0]", "begin <= end"});
  refuses(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}})", 1, {"[-1,0]"});
  refuses(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1, {"[0]"});
  refuses(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551615]}})", 1, {"18446744073709551615"});
}

TEST(Safetensors, RefusesAByteRangeThatDoesNotFitTheShape) {
  refuses(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,23]}})", 23,
          {"tensor \"a\"", "23", "[2, 3]", "F32", "24"});
}

TEST(Safetensors, RefusesOverlaps) {
  refuses(
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})", 7,
      {"tensor \"b\"", "tensor \"a\"", "3", "4", "overlap"});
  refuses(
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4,
      {"tensor \"b\"", "overlap"});
}

TEST(Safetensors, RefusesGaps) {
  refuses(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}})", 5, {"tensor \"a\"", "the header", "gap"});
  refuses(
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}})", 6,
      {"tensor \"b\"", "tensor \"a\"", "gap"});
}

TEST(Safetensors, RefusesTrailingBytes) { refuses(kOne, 25, {"24", "25", "trailing"}); }

TEST(Safetensors, NamesFilesThatAreSomethingElse) {
  expect_error([] { parse("GGUF\3\0\0\0 and so on"); }, {"w.safetensors", "GGUF"});
  expect_error([] { parse("version https://git-lfs.github.com/spec/v1\noid sha256:00\n"); },
               {"Git LFS", "git lfs pull"});
}

TEST(Safetensors, KeepsAHostileNameOnOneLine) {
  refuses(R"({"a\nb":{"dtype":"U8","shape":[1],"data_offsets":[0,2]}})", 2, {R"(tensor "a\nb")"});
  refuses("{\"" + std::string(5000, 'x') + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,2]}})", 2, {"xxx..."});
}

TEST(OpenSafetensors, OpensASingleFile) {
  const TempFolder folder;
  const std::string file = folder.write("anything.st", safetensors_of({"b", "a"}));
  const auto source = open_safetensors(file);
  EXPECT_EQ(source->path(), file);
  EXPECT_THAT(source->names(), ElementsAre("a", "b"));
  ASSERT_NE(source->find("a"), nullptr);
  EXPECT_EQ(source->find("a")->file->path(), file);
  EXPECT_EQ(source->find("c"), nullptr);
  float value = 0;
  to_float(ElementType::kF32, source->find("a")->bytes.data(), 1, &value);
  EXPECT_EQ(value, 1.0f);
}

TEST(OpenSafetensors, PrefersTheIndexThenTheSingleFileThenAllShards) {
  const TempFolder folder;
  folder.write("model-extra.safetensors", safetensors_of({"shard"}));
  folder.write("other.safetensors", safetensors_of({"other"}));
  EXPECT_THAT(open_safetensors(folder.path())->names(), ElementsAre("shard"));
  folder.write("model.safetensors", safetensors_of({"single"}));
  EXPECT_THAT(open_safetensors(folder.path())->names(), ElementsAre("single"));
  folder.write("model.safetensors.index.json", R"({"weight_map":{"shard":"model-extra.safetensors"}})");
  EXPECT_THAT(open_safetensors(folder.path())->names(), ElementsAre("shard"));
}

TEST(OpenSafetensors, LeavesOutTensorsTheIndexDoesNotMap) {
  const TempFolder folder;
  folder.write("s.safetensors", safetensors_of({"a", "b"}));
  folder.write("model.safetensors.index.json", R"({"metadata":{"total_size":1},"weight_map":{"b":"s.safetensors"}})");
  EXPECT_THAT(open_safetensors(folder.path())->names(), ElementsAre("b"));
}

TEST(OpenSafetensors, ListsEveryMissingShard) {
  const TempFolder folder;
  folder.write("m2.safetensors", safetensors_of({"b"}));
  folder.write(
      "model.safetensors.index.json",
      R"({"weight_map":{"a":"m1.safetensors","b":"m2.safetensors","c":"m3.safetensors","d":"m3.safetensors"}})");
  expect_error([&] { open_safetensors(folder.path()); },
               {"model.safetensors.index.json", "2 of 3", "m1.safetensors, m3.safetensors"});
}

TEST(OpenSafetensors, ListsEveryMappedTensorThatIsNotInItsFile) {
  const TempFolder folder;
  folder.write("m1.safetensors", safetensors_of({"a"}));
  folder.write("m2.safetensors", safetensors_of({"b"}));
  folder.write("model.safetensors.index.json",
               R"({"weight_map":{"a":"m1.safetensors","b":"m1.safetensors","c":"m2.safetensors"}})");
  expect_error([&] { open_safetensors(folder.path()); },
               {"index.json", "\"b\" (in", "m1.safetensors)", "\"c\" (in", "m2.safetensors)"});
}

TEST(OpenSafetensors, RefusesATensorInTwoShards) {
  const TempFolder folder;
  folder.write("model-1.safetensors", safetensors_of({"a"}));
  folder.write("model-2.safetensors", safetensors_of({"b", "a"}));
  expect_error([&] { open_safetensors(folder.path()); },
               {"model-2.safetensors", "tensor \"a\"", "model-1.safetensors"});
  folder.write("model.safetensors.index.json",
               R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})");
  expect_error([&] { open_safetensors(folder.path()); }, {"model-2.safetensors", "tensor \"a\""});
}

TEST(OpenSafetensors, RefusesAnIndexThatLeavesItsFolder) {
  const TempFolder folder;
  for (const char* name :
       {"../m.safetensors", "/etc/passwd", "a/m.safetensors", "a\\\\m", "..", ".", "", "a..b", "m\\u0000"}) {
    SCOPED_TRACE(name);
    folder.write("model.safetensors.index.json", std::string(R"({"weight_map":{"a":")") + name + "\"}}");
    expect_error([&] { open_safetensors(folder.path()); }, {"index.json", "weight_map.\"a\"", "same folder"});
  }
}

TEST(OpenSafetensors, RefusesAMalformedIndex) {
  const TempFolder folder;
  const auto refuses_index = [&](const char* text, std::initializer_list<const char*> parts) {
    SCOPED_TRACE(text);
    folder.write("model.safetensors.index.json", text);
    expect_error([&] { open_safetensors(folder.path()); }, parts);
  };
  refuses_index("{}", {"index.json", "weight_map", "missing"});
  refuses_index(R"({"weight_map":[]})", {"weight_map", "object"});
  refuses_index(R"({"weight_map":{}})", {"weight_map", "no tensor"});
  refuses_index(R"({"weight_map":{"a":5}})", {"weight_map.\"a\" = 5", "name of a file"});
  refuses_index(R"({"weight_map":{"a":null}})", {"weight_map.\"a\" = null"});
  refuses_index("[]", {"index.json", "[]"});
}

TEST(OpenSafetensors, AnIndexOfManyTensorsIsReadInLinearTime) {
  std::vector<std::string> names;
  std::string map;
  for (int i = 0; i < 100000; ++i) {
    names.push_back("model.layers." + std::to_string(i) + ".weight");
    map += (i == 0 ? "\"" : ",\"") + names.back() + "\":\"s.safetensors\"";
  }
  const TempFolder folder;
  folder.write("s.safetensors", safetensors_of(names));
  folder.write("model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(open_safetensors(folder.path())->names().size(), names.size());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15))
      << "quadratic in the number of tensors?";
}

TEST(OpenSafetensors, NumberedShardsWithoutAnIndexMustBeComplete) {
  const TempFolder folder;
  folder.write("model-00002-of-00003.safetensors", safetensors_of({"b"}));
  expect_error([&] { open_safetensors(folder.path()); },
               {"model-00001-of-00003.safetensors, model-00003-of-00003.safetensors"});
  folder.write("model-00001-of-00003.safetensors", safetensors_of({"a"}));
  folder.write("model-00003-of-00003.safetensors", safetensors_of({"c"}));
  EXPECT_THAT(open_safetensors(folder.path())->names(), ElementsAre("a", "b", "c"));
}

TEST(OpenSafetensors, SaysWhatIsExpectedWhenThereAreNoWeights) {
  const TempFolder folder;
  expect_error([&] { open_safetensors(folder.path()); }, {"no weights", "model.safetensors"});
  expect_error([&] { open_safetensors(folder / "nowhere"); }, {"nowhere", "does not exist"});
}

TEST(OpenSafetensors, NamesTheShardThatIsShort) {
  const TempFolder folder;
  folder.write("model-00001-of-00002.safetensors", safetensors_of({"a"}));
  const std::string whole = safetensors_of({"b", "c"});
  folder.write("model-00002-of-00002.safetensors", whole.substr(0, whole.size() - 1));
  expect_error([&] { open_safetensors(folder.path()); },
               {"model-00002-of-00002.safetensors", "tensor \"c\"", "16", "15"});
}

TEST(TensorSource, RequireNamesFileTensorAndBothShapes) {
  const TempFolder folder;
  const std::string file = folder.write(
      "m.safetensors",
      safetensors_bytes(
          R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"i":{"dtype":"I32","shape":[1],"data_offsets":[24,28]}})",
          std::string(28, '\0')));
  const auto source = open_safetensors(file);
  EXPECT_EQ(&source->require("a", {2, 3}), source->find("a"));
  expect_error([&] { source->require("a", {3, 2}); }, {file.c_str(), "tensor \"a\"", "[2, 3]", "[3, 2]"});
  expect_error([&] { source->require("b", {5}); }, {file.c_str(), "tensor \"b\"", "[5]", "missing"});
  expect_error([&] { source->require("i", {1}); }, {file.c_str(), "tensor \"i\"", "I32", "float"});
}

TEST(OpenSafetensors, ReadsWhatOtherSoftwareWrote) {
  DRAFTHORSE_NEEDS_SHARED(folder, "golden/targets/qwen3");
  const auto source = open_safetensors(folder);
  EXPECT_EQ(source->names().size(), 46u);
  EXPECT_EQ(source->require("model.embed_tokens.weight", {320, 64}).type, ElementType::kF32);
}

}  // namespace
}  // namespace drafthorse

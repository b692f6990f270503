#include "base/json.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace drafthorse {
namespace {

std::string error_of(const std::string& text, const JsonLimits& limits = {}) {
  try {
    parse_json(text, "f.json", limits);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Json, KeepsKeysInFileOrder) {
  const Json json = parse_json(R"({"b":1,"a":[true,null,{"c":"d"}],"e":{}})", "f.json");
  EXPECT_EQ(json.dump(), R"({"b":1,"a":[true,null,{"c":"d"}],"e":{}})");
}

TEST(Json, ScalarsAreDocumentsToo) {
  EXPECT_EQ(parse_json("5", "f.json").get<int>(), 5);
  EXPECT_EQ(parse_json("\"x\"", "f.json").get<std::string>(), "x");
}

TEST(Json, ADuplicateKeyIsAnErrorNamingFileAndKey) {
  EXPECT_EQ(error_of(R"({"a":1,"b":{"a":1},"a":2})"), "f.json: duplicate key \"a\"");
  EXPECT_EQ(error_of(R"({"a":{"x":1},"b":{"x":2}})"), "");
}

TEST(Json, NestingIsLimitedBeforeMemoryIsSpent) {
  EXPECT_EQ(error_of(std::string(100000, '[')), "f.json: nested deeper than 64 levels");
  EXPECT_EQ(error_of(std::string(64, '[') + std::string(64, ']')), "");
}

TEST(Json, BadTextNamesTheByte) {
  EXPECT_NE(error_of("{\"a\": tru}").find("f.json: not valid JSON at byte"), std::string::npos);
  EXPECT_NE(error_of("{} x").find("f.json: not valid JSON"), std::string::npos);
  EXPECT_NE(error_of("").find("f.json: not valid JSON"), std::string::npos);
  EXPECT_NE(error_of("\"\xff\"").find("f.json: not valid JSON"), std::string::npos);
  EXPECT_NE(error_of("[1e999]").find("number overflow"), std::string::npos);
}

TEST(Json, LengthIsLimited) {
  JsonLimits limits;
  limits.bytes = 4;
  EXPECT_EQ(error_of("[1,2]", limits), "f.json: 5 bytes of JSON, more than the limit of 4");
}

TEST(JsonObject, ANullCountsAsAbsent) {
  const Json json = parse_json(R"({"a":null,"b":2})", "f.json");
  const JsonObject object(json, "f.json");
  EXPECT_FALSE(object.has("a"));
  EXPECT_FALSE(object.integer("a").has_value());
  EXPECT_EQ(object.integer("b"), 2);
}

TEST(JsonObject, WrongTypesNameFileKeyAndValue) {
  const Json json = parse_json(R"({"n":8.5,"s":[1,"x"],"o":{"inner":true},"big":18446744073709551615})", "f.json");
  const JsonObject object(json, "f.json");
  const auto message = [&](auto read) {
    try {
      read();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(message([&] { object.integer("n"); }), "f.json: n = 8.5: must be a whole number");
  EXPECT_EQ(message([&] { object.integer("big"); }), "f.json: big = 18446744073709551615: must be a whole number");
  EXPECT_EQ(message([&] { object.integers("s"); }), "f.json: s = [1,\"x\"]: must be a list of whole numbers");
  EXPECT_EQ(message([&] { object.object("o")->integer("inner"); }), "f.json: o.inner = true: must be a whole number");
  EXPECT_EQ(message([&] { JsonObject(json.at("s"), "f.json", "s."); }),
            "f.json: s: expected an object, found [1,\"x\"]");
}

TEST(JsonObject, AWholeFloatIsAnInteger) {
  const Json json = parse_json(R"({"n":8.0})", "f.json");
  EXPECT_EQ(JsonObject(json, "f.json").integer("n"), 8);
}

}  // namespace
}  // namespace drafthorse

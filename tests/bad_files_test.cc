// Files come from strangers. Each case below damages one file of a correct model folder by hand; the program must
// answer with exit code 2 and one line that names the file, the key and the value.

#include <gtest/gtest.h>

#include <functional>

#include "base/json.h"
#include "base/mapped_file.h"
#include "support/program.h"
#include "support/safetensors_bytes.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace drafthorse {
namespace {

/// Width 16, two layers, vocabulary 40: the smallest Qwen3 the loader takes.
Json target_config() {
  return parse_json(
      R"({"architectures":["Qwen3ForCausalLM"],"hidden_size":16,"intermediate_size":32,"num_hidden_layers":2,
    "num_attention_heads":2,"num_key_value_heads":1,"head_dim":8,"vocab_size":40,"rms_norm_eps":1e-6,"rope_theta":10000.0,
    "max_position_embeddings":64,"tie_word_embeddings":true,"eos_token_id":1})",
      "config");
}

Json draft_config() {
  Json config = target_config();
  config["architectures"] = {"DFlashDraftModel"};
  config["num_hidden_layers"] = 1;
  config["num_target_layers"] = 2;
  config["block_size"] = 4;
  config["dflash_config"] = {{"mask_token_id", 3}, {"target_layer_ids", {0, 1}}};
  return config;
}

using Shapes = std::vector<std::pair<std::string, std::vector<int>>>;

void add_layers(int layers, const std::string& prefix, Shapes& shapes) {
  for (int i = 0; i < layers; ++i) {
    const std::string p = prefix + "layers." + std::to_string(i) + ".";
    shapes.insert(shapes.end(), {{p + "input_layernorm.weight", {16}},
                                 {p + "post_attention_layernorm.weight", {16}},
                                 {p + "self_attn.q_proj.weight", {16, 16}},
                                 {p + "self_attn.k_proj.weight", {8, 16}},
                                 {p + "self_attn.v_proj.weight", {8, 16}},
                                 {p + "self_attn.o_proj.weight", {16, 16}},
                                 {p + "self_attn.q_norm.weight", {8}},
                                 {p + "self_attn.k_norm.weight", {8}},
                                 {p + "mlp.gate_proj.weight", {32, 16}},
                                 {p + "mlp.up_proj.weight", {32, 16}},
                                 {p + "mlp.down_proj.weight", {16, 32}}});
  }
}

Shapes target_shapes() {
  Shapes shapes = {{"model.embed_tokens.weight", {40, 16}}, {"model.norm.weight", {16}}};
  add_layers(2, "model.", shapes);
  return shapes;
}

Shapes draft_shapes() {
  Shapes shapes = {{"fc.weight", {16, 32}}, {"hidden_norm.weight", {16}}, {"norm.weight", {16}}};
  add_layers(1, "", shapes);
  return shapes;
}

struct Weights {
  Json header = Json::object();
  std::string data;
};

Weights weights_of(const Shapes& shapes) {
  Weights weights;
  for (const auto& [name, shape] : shapes) {
    std::size_t count = 1;
    for (const int dim : shape) count *= static_cast<std::size_t>(dim);
    const std::size_t begin = weights.data.size();
    for (std::size_t i = 0; i < count; ++i) {
      const float value = 0.01f * static_cast<float>(i % 7);
      weights.data.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    weights.header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {begin, weights.data.size()}}};
  }
  return weights;
}

/// A correct pair of folders that a case may damage before it is written.
struct Pair {
  Json target = target_config();
  Json draft = draft_config();
  Weights target_weights = weights_of(target_shapes());
  Weights draft_weights = weights_of(draft_shapes());
  Json tokenizer;                                      // null: none
  std::function<void(const std::string&)> afterwards;  // with the pair's folder
};

struct Case {
  std::string name;
  std::function<void(Pair&)> damage;
  std::vector<std::string> named;  // what the line must name
};

void write_pair(const Pair& pair, const TempFolder& folder) {
  std::filesystem::create_directories(folder / "target");
  std::filesystem::create_directories(folder / "draft");
  folder.write("target/config.json", pair.target.dump());
  folder.write("draft/config.json", pair.draft.dump());
  folder.write("target/model.safetensors",
               safetensors_bytes(pair.target_weights.header.dump(), pair.target_weights.data));
  folder.write("draft/model.safetensors", safetensors_bytes(pair.draft_weights.header.dump(), pair.draft_weights.data));
  if (!pair.tokenizer.is_null()) folder.write("target/tokenizer.json", pair.tokenizer.dump());
  if (pair.afterwards) pair.afterwards(folder.path());
}

ProgramResult run_pair(const TempFolder& folder) {
  return run_program({DRAFTHORSE_BINARY, "run", folder / "target", "--draft", folder / "draft", "--ids", "5,6,7", "-n",
                      "4", "--json"});
}

Json byte_tokenizer() {
  Json vocab = Json::object();
  for (int i = 0; i < 30; ++i) vocab[std::string(1, static_cast<char>('A' + i))] = i;
  return {{"version", "1.0"},
          {"added_tokens", Json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", nullptr},
          {"post_processor", nullptr},
          {"decoder", {{"type", "Fuse"}}},
          {"model", {{"type", "BPE"}, {"unk_token", "A"}, {"vocab", vocab}, {"merges", Json::array()}}}};
}

std::function<void(Pair&)> cut(const std::string& file, std::size_t bytes) {
  return [=](Pair& pair) {
    pair.afterwards = [=](const std::string& folder) { std::filesystem::resize_file(folder + "/" + file, bytes); };
  };
}

std::function<void(Pair&)> text(const std::string& file, const std::string& content) {
  return [=](Pair& pair) {
    pair.afterwards = [=](const std::string& folder) {
      std::ofstream(folder + "/" + file, std::ios::binary) << content;
    };
  };
}

template <typename Value>
std::function<void(Pair&)> target_key(const std::string& key, Value value) {
  return [=](Pair& pair) { pair.target[key] = value; };
}

template <typename Value>
std::function<void(Pair&)> draft_key(const std::string& key, Value value) {
  return [=](Pair& pair) { pair.draft[key] = value; };
}

std::function<void(Pair&)> rename(Weights Pair::*weights, const std::string& name, const std::string& new_name) {
  return [=](Pair& pair) {
    Json& header = (pair.*weights).header;
    const Json entry = header[name];
    header.erase(name);
    header[new_name] = entry;
  };
}

std::vector<Case> cases() {
  return {
      // Containers.
      {"header cut off", cut("target/model.safetensors", 7), {"model.safetensors", "7"}},
      {"data one byte short", [](Pair& p) { p.target_weights.data.pop_back(); }, {"model.safetensors", "layers.1"}},
      {"trailing bytes", [](Pair& p) { p.target_weights.data += "xx"; }, {"model.safetensors", "2"}},
      {"empty weights", cut("target/model.safetensors", 0), {"model.safetensors", "0"}},
      {"header length of 2^63",
       text("target/model.safetensors", std::string("\0\0\0\0\0\0\0\x80{}", 10)),
       {"model.safetensors", "9223372036854775808"}},
      {"header is a list", text("draft/model.safetensors", safetensors_bytes("[1]", "")), {"model.safetensors"}},
      {"header is not JSON", text("draft/model.safetensors", safetensors_bytes("{\"a\"", "")), {"model.safetensors"}},
      {"overlapping ranges",
       [](Pair& p) {
         p.target_weights.header["model.norm.weight"]["data_offsets"] = {0, 64};
       },
       {"model.safetensors", "model.norm.weight"}},
      {"a range past the end",
       [](Pair& p) {
         p.draft_weights.header["norm.weight"]["data_offsets"] = {1000000, 1000064};
       },
       {"model.safetensors", "norm.weight"}},
      {"a shape that overflows",
       [](Pair& p) {
         p.target_weights.header["model.norm.weight"]["shape"] = {4294967296, 4294967296, 16};
       },
       {"model.safetensors", "model.norm.weight"}},
      {"an unknown type",
       [](Pair& p) { p.target_weights.header["model.norm.weight"]["dtype"] = "F8_E4M3"; },
       {"model.safetensors", "model.norm.weight", "F8_E4M3"}},
      {"a missing tensor",
       rename(&Pair::target_weights, "model.layers.1.mlp.up_proj.weight", "model.layers.1.mlp.up_projection.weight"),
       {"up_proj"}},
      {"a tensor too many",
       [](Pair& p) {
         Shapes shapes = target_shapes();
         shapes.emplace_back("model.layers.0.extra.weight", std::vector<int>{2});
         p.target_weights = weights_of(shapes);
       },
       {"model.layers.0.extra.weight"}},
      {"a wrong shape",
       [](Pair& p) {
         p.target_weights.header["model.layers.0.self_attn.q_proj.weight"]["shape"] = {8, 32};
       },
       {"q_proj", "[8, 32]", "[16, 16]"}},
      {"shard missing",
       [](Pair& p) {
         p.afterwards = [](const std::string& folder) {
           std::ofstream(folder + "/target/model.safetensors.index.json")
               << R"({"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}})";
         };
       },
       {"index.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}},
      {"shard outside the folder",
       text("target/model.safetensors.index.json", R"({"weight_map":{"a":"../x.safetensors"}})"),
       {"index.json", "../x.safetensors"}},
      // Target config.
      {"config missing",
       [](Pair& p) { p.afterwards = [](const std::string& f) { std::filesystem::remove(f + "/target/config.json"); }; },
       {"config.json"}},
      {"config not JSON", text("target/config.json", "{\"hidden_size\": }"), {"config.json", "byte"}},
      {"config nested too deep", text("target/config.json", std::string(5000, '[')), {"config.json", "nested"}},
      {"invalid UTF-8", text("target/config.json", "{\"a\": \"\xc3\x28\"}"), {"config.json"}},
      {"unknown architecture",
       target_key("architectures", Json::array({"GPT2LMHeadModel"})),
       {"config.json", "GPT2LMHeadModel"}},
      {"zero width", target_key("hidden_size", 0), {"config.json", "hidden_size", "0"}},
      {"layers not a number", target_key("num_hidden_layers", "two"), {"config.json", "num_hidden_layers", "two"}},
      {"too many layers", target_key("num_hidden_layers", 100000), {"config.json", "num_hidden_layers", "100000"}},
      {"heads that do not divide", target_key("num_key_value_heads", 3), {"config.json", "num_key_value_heads", "3"}},
      {"odd head width", target_key("head_dim", 7), {"config.json", "head_dim", "7"}},
      {"negative epsilon", target_key("rms_norm_eps", -1.0), {"config.json", "rms_norm_eps", "-1"}},
      {"unknown rope",
       target_key("rope_scaling", Json{{"rope_type", "longrope"}, {"factor", 2.0}}),
       {"config.json", "longrope"}},
      {"wrong activation", target_key("hidden_act", "gelu"), {"config.json", "hidden_act", "gelu"}},
      {"fp8 weights", target_key("quantization_config", Json{{"quant_method", "fp8"}}), {"config.json", "fp8"}},
      // Draft config and pairing.
      {"no mask token",
       [](Pair& p) { p.draft["dflash_config"].erase("mask_token_id"); },
       {"config.json", "mask_token_id"}},
      {"mask token past the vocabulary",
       [](Pair& p) { p.draft["dflash_config"]["mask_token_id"] = 40; },
       {"mask_token_id", "40"}},
      {"no taps",
       [](Pair& p) { p.draft["dflash_config"].erase("target_layer_ids"); },
       {"config.json", "target_layer_ids"}},
      {"taps not ascending",
       [](Pair& p) {
         p.draft["dflash_config"]["target_layer_ids"] = {1, 0};
       },
       {"target_layer_ids", "[1,0]"}},
      {"a tap past the last layer",
       [](Pair& p) {
         p.draft["dflash_config"]["target_layer_ids"] = {0, 2};
       },
       {"target_layer_ids", "2"}},
      {"made for another depth", draft_key("num_target_layers", 3), {"num_target_layers", "3", "2"}},
      {"made for another width", draft_key("hidden_size", 32), {"hidden_size", "32", "16"}},
      {"made for another vocabulary", draft_key("vocab_size", 48), {"vocab_size", "48", "40"}},
      {"block of one", draft_key("block_size", 1), {"block_size", "1"}},
      {"another network of the same name",
       [](Pair& p) { p.draft["dflash_config"]["projector_type"] = "dspark"; },
       {"projector_type", "dspark"}},
      {"fc missing", rename(&Pair::draft_weights, "fc.weight", "fc2.weight"), {"fc"}},
      {"draft folder missing",
       [](Pair& p) { p.afterwards = [](const std::string& f) { std::filesystem::remove_all(f + "/draft"); }; },
       {"draft"}},
      // Tokenizer.
      {"tokenizer kind",
       [](Pair& p) {
         p.tokenizer = byte_tokenizer();
         p.tokenizer["model"]["type"] = "WordPiece";
       },
       {"tokenizer.json", "WordPiece"}},
      {"a token id twice",
       [](Pair& p) {
         p.tokenizer = byte_tokenizer();
         p.tokenizer["model"]["vocab"]["B"] = 0;
       },
       {"tokenizer.json", "0"}},
      {"a merge of unknown tokens",
       [](Pair& p) {
         p.tokenizer = byte_tokenizer();
         p.tokenizer["model"]["merges"] = {"A B"};
       },
       {"tokenizer.json", "merges"}},
      {"an unknown normalizer",
       [](Pair& p) {
         p.tokenizer = byte_tokenizer();
         p.tokenizer["normalizer"] = {{"type", "Rot13"}};
       },
       {"tokenizer.json", "Rot13"}},
      {"a broken regex",
       [](Pair& p) {
         p.tokenizer = byte_tokenizer();
         p.tokenizer["pre_tokenizer"] = {
             {"type", "Split"}, {"pattern", {{"Regex", "(unclosed"}}}, {"behavior", "Isolated"}, {"invert", false}};
       },
       {"tokenizer.json", "(unclosed"}},
  };
}

class BadFiles : public ::testing::TestWithParam<Case> {};

TEST_P(BadFiles, GiveOneLineThatNamesFileKeyAndValue) {
  const TempFolder folder;
  Pair pair;
  GetParam().damage(pair);
  write_pair(pair, folder);
  const ProgramResult result = run_pair(folder);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  for (const std::string& part : GetParam().named)
    EXPECT_NE(result.err.find(part), std::string::npos) << part << " is not in: " << result.err;
}

INSTANTIATE_TEST_SUITE_P(Hand, BadFiles, ::testing::ValuesIn(cases()), [](const auto& parameter) {
  std::string name = parameter.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

TEST(GoodFiles, TheUndamagedPairRuns) {
  const TempFolder folder;
  write_pair(Pair{}, folder);
  const ProgramResult result = run_pair(folder);
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(GoodFiles, TheUndamagedTokenizerLoads) {
  const TempFolder folder;
  Pair pair;
  pair.tokenizer = byte_tokenizer();
  write_pair(pair, folder);
  const ProgramResult result = run_pair(folder);
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace drafthorse

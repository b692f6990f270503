#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "cli/command.h"
#include "cli/flags.h"

namespace drafthorse {
namespace {

void print_tensors(const TensorSource& source) {
  std::map<std::string, std::uint64_t> by_type;
  std::uint64_t total = 0;
  const auto names = source.names();
  std::printf("  tensors:\n");
  for (const std::string& name : names) {
    const TensorView& tensor = *source.find(name);
    const std::string type = tensor.type_text();
    std::printf("    %-60s %-5s %-18s %s\n", printable(name).c_str(), type.c_str(), shape_text(tensor.shape).c_str(),
                bytes_text(tensor.stored_bytes()).c_str());
    by_type[type] += tensor.stored_bytes();
    total += tensor.stored_bytes();
  }
  // A head that is the embedding table too is there twice: as rows to look up, listed above, and in kernel order.
  for (const PackedStack& stack : source.stacks()) {
    for (const StackPart& part : stack.parts) {
      const TensorView* plain = source.find(part.name);
      if (plain == nullptr || plain->packed) continue;
      const TensorView packed{.name = part.name, .shape = {part.rows, stack.cols}, .bytes = {}, .packed = stack.type};
      std::printf("    %-60s %-5s %-18s %s, in kernel order\n", printable(part.name).c_str(),
                  packed.type_text().c_str(), shape_text(packed.shape).c_str(),
                  bytes_text(packed.stored_bytes()).c_str());
      by_type[packed.type_text()] += packed.stored_bytes();
      total += packed.stored_bytes();
    }
  }
  std::printf("  %zu tensors, %s:", names.size(), bytes_text(total).c_str());
  for (const auto& [type, bytes] : by_type) std::printf(" %s %s", type.c_str(), bytes_text(bytes).c_str());
  std::printf("\n");
}

void print_layers(const std::vector<LayerType>& types, const std::vector<int>& windows) {
  std::printf("  layers:");
  for (std::size_t i = 0; i < types.size(); ++i) {
    std::printf(" %s", types[i] == LayerType::kFullAttention ? "full" : "sliding");
    if (windows[i] > 0) std::printf("(%d)", windows[i]);
  }
  std::printf("\n");
}

void print_rope(const RopeConfig& rope) {
  static const char* const kKinds[] = {"default", "linear", "llama3", "yarn"};
  std::printf("  rope: theta %g, %s, factor %g, %d dims%s\n", rope.theta, kKinds[static_cast<int>(rope.kind)],
              rope.factor, rope.rotary_dims, rope.interleaved ? ", interleaved" : "");
}

void print_tokenizer(const TargetFiles& files) {
  if (!files.tokenizer) {
    std::printf("  tokenizer: none; prompts are given as --ids\n");
    return;
  }
  const Tokenizer& tokenizer = *files.tokenizer;
  const auto token = [&](const std::optional<std::int32_t>& id) {
    return id ? std::to_string(*id) + " " + printable(tokenizer.token_content(*id)) : std::string("none");
  };
  std::printf("  tokenizer: %d ids, BOS %s (%s), EOS %s\n", tokenizer.vocab_size(), token(tokenizer.bos_id()).c_str(),
              tokenizer.adds_bos() ? "added to prompts" : "not added", token(tokenizer.eos_id()).c_str());
}

void print_need(const char* name, const MemoryNeed& need, std::int64_t context) {
  std::printf("  memory as %s: weights %s, keys and values of %" PRId64 " positions %s, working memory %s\n", name,
              bytes_text(need.weights).c_str(), context, bytes_text(need.kv).c_str(), bytes_text(need.scratch).c_str());
}

void print_target(const TargetFiles& files) {
  const TargetConfig& config = files.config;
  std::printf("%s: target, %s\n", files.path().c_str(), config.architecture.c_str());
  std::printf(
      "  num_hidden_layers %d, hidden_size %d, intermediate_size %d, vocab_size %d, max_position_embeddings %d\n",
      config.num_hidden_layers, config.hidden_size, config.intermediate_size, config.vocab_size,
      config.max_position_embeddings);
  std::printf("  num_attention_heads %d, num_key_value_heads %d, head_dim %d, rms_norm_eps %g, %s%s\n",
              config.num_attention_heads, config.num_key_value_heads, config.head_dim, config.rms_norm_eps,
              config.qk_norm ? "q and k norms" : "no q and k norms", config.attention_bias_qkv ? ", biases" : "");
  print_rope(config.rope);
  print_layers(config.layer_types, config.sliding_windows);
  std::printf("  stop ids:");
  for (const std::int32_t id : files.stop_ids) std::printf(" %d", id);
  std::printf("%s\n", files.stop_ids.empty() ? " none" : "");
  print_tokenizer(files);
  for (const char* weights : {"file", "q8_0"}) {
    if (!files.tensors->stacks().empty() && weights != std::string_view("file")) break;  // packed for good
    LoadOptions options;
    options.weights = WeightsChoice::parse(weights);
    print_need(weights, plan_memory(files, nullptr, options).target, config.max_position_embeddings);
  }
  print_tensors(*files.tensors);
}

void print_draft(const DraftFiles& files) {
  const DraftConfig& config = files.config;
  std::printf("%s: draft, %s\n", files.path.c_str(), config.architecture.c_str());
  std::printf(
      "  num_hidden_layers %d, hidden_size %d, intermediate_size %d, num_attention_heads %d, num_key_value_heads %d, "
      "head_dim %d\n",
      config.num_hidden_layers, config.hidden_size, config.intermediate_size, config.num_attention_heads,
      config.num_key_value_heads, config.head_dim);
  std::printf("  block_size %d (depth %d at most), mask_token_id %" PRId64 ", target_layer_ids", config.block_size,
              config.block_size - 1, config.mask_token_id);
  for (const int layer : config.target_layer_ids) std::printf(" %d", layer);
  std::printf(", num_target_layers %d\n", config.num_target_layers);
  print_rope(config.rope);
  print_layers(config.layer_types, config.sliding_windows);
  print_tensors(*files.tensors);
}

int inspect(const std::vector<std::string>& paths) {
  std::unique_ptr<TargetFiles> target;
  std::vector<DraftFiles> drafts;
  for (const std::string& path : paths) {
    std::error_code unreadable;  // then opening it as a folder says what is wrong
    if (std::filesystem::is_regular_file(path, unreadable)) {
      const auto source = open_safetensors(path);
      std::printf("%s: tensors\n", path.c_str());
      print_tensors(*source);
    } else if (is_draft_folder(path)) {
      drafts.push_back(open_draft(path));
      print_draft(drafts.back());
    } else {
      if (target) throw Error(path + ": a second target; give one, and any number of drafts");
      target = std::make_unique<TargetFiles>(open_target(path));
      print_target(*target);
    }
  }
  if (!target) return kExitOk;
  for (const DraftFiles& draft : drafts) {
    const std::string pair = "pairing of " + target->path() + " and " + draft.path + ": ";
    std::fflush(stdout);  // the tables come before the error
    check_pairing(draft.config, target->facts(), target->path());
    std::printf("%s%s\n", pair.c_str(), "they fit");
    for (const std::string& warning : pairing_warnings(draft.config, target->facts()))
      std::printf("  %s\n", warning.c_str());
  }
  return kExitOk;
}

}  // namespace

Command add_inspect_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("inspect", "what is in a model's files, and whether a draft fits a target");
  auto paths = std::make_shared<std::vector<std::string>>();
  command->add_option("PATH", *paths, "model folders or safetensors files")->required()->type_name("");
  command->footer(
      "Given a target and drafts, it says whether they can be paired; exits with 2 when not.\n"
      "Example:\n  drafthorse inspect models/demo/target models/demo/dflash");
  return {command, [paths] { return inspect(*paths); }};
}

}  // namespace drafthorse

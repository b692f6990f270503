#include "engine/score.h"

#include <cstdio>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/flags.h"

namespace drafthorse {
namespace {

struct ScoreFlags {
  ModelFlags model;
  std::optional<std::string> ids;
  std::optional<std::string> text;
  std::int64_t top = 0;
  bool json = false;
};

void print_json(const std::vector<std::int32_t>& ids, const Score& score) {
  Json json;
  json["ids"] = ids;
  json["nll"] = score.nll;
  json["nll_mean"] = score.nll_mean();
  json["top"] = Json::array();
  for (const Score::Top& top : score.top) json["top"].push_back({{"ids", top.ids}, {"logits", top.logits}});
  print_json_line(json);
}

void print_table(const std::vector<std::int32_t>& ids, const Score& score) {
  for (std::size_t t = 0; t < ids.size(); ++t) {
    std::printf("%5zu  id %7d", t, ids[t]);
    if (t > 0) {
      std::printf("  nll %8.4f", score.nll[t - 1]);
    } else {
      std::printf("              ");
    }
    if (t < score.top.size()) {
      std::printf("  next:");
      for (std::size_t k = 0; k < score.top[t].ids.size(); ++k) {
        std::printf(" %d (%.3f)", score.top[t].ids[k], static_cast<double>(score.top[t].logits[k]));
      }
    }
    std::printf("\n");
  }
  std::printf("mean nll %.6f over %zu tokens\n", score.nll_mean(), score.nll.size());
}

int score(const ScoreFlags& flags) {
  if (flags.ids.has_value() == flags.text.has_value()) throw Error("give either --ids or --text");
  const LoadOptions options = flags.model.load_options();
  const OpenedModels opened = flags.model.open(false);
  std::vector<std::int32_t> ids;
  if (flags.ids) {
    ids = parse_ids(*flags.ids, "--ids");
  } else {
    if (!opened.target.tokenizer) throw Error(opened.target.path() + ": has no tokenizer.json, so give --ids");
    require_utf8(*flags.text, "--text");
    ids = opened.target.tokenizer->encode(*flags.text);
    if (ids.empty()) throw Error("--text: it is empty");
  }
  check_scorable(ids, opened.target.config.vocab_size, context_of(opened.target, options));
  LoadedModel model(opened.target, nullptr, options);
  const Score result = score_ids(model.target(), model.exec(), ids, flags.top);
  if (flags.json) {
    print_json(ids, result);
  } else {
    print_table(ids, result);
  }
  return kExitOk;
}

}  // namespace

Command add_score_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("score", "how likely a text is, token by token");
  auto flags = std::make_shared<ScoreFlags>();
  flags->model.add_to(*command, false);
  for (const char* about_drafts : {"--draft", "--draft-vocab", "--draft-head"}) {
    command->remove_option(command->get_option(about_drafts));
  }
  command->add_option("--ids", flags->ids, "token ids to score, as they are: 1,2,3")->type_name("IDS");
  command->add_option("--text", flags->text, "text to score; no BOS is added")->type_name("S");
  command->add_option("--top", flags->top, "show the K likeliest tokens at every place")
      ->type_name("K")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 24));
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer("Example:\n  drafthorse score models/demo/target --text 'for i in range(10):' --top 3");
  return {command, [flags] { return score(*flags); }};
}

}  // namespace drafthorse

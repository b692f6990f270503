#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "checkpoint/generation_config.h"
#include "engine/generate.h"
#include "engine/loaded_model.h"

namespace drafthorse {

/// A model and its draft as named by flags, opened and checked. The files live here.
struct OpenedModels {
  TargetFiles target;
  std::unique_ptr<DraftFiles> draft;  ///< null: none was asked for
};

/// Flags that say which model runs and on what. Those that verify takes lists of are text.
struct ModelFlags {
  std::optional<std::string> model;  ///< nothing: the demonstration pair
  std::vector<std::string> drafts;
  std::string weights = "file";
  std::string kv;
  std::string isa;
  std::string threads;
  bool pin = false;
  std::string draft_vocab;
  std::string draft_head;
  std::int64_t context = 0;

  /// Registers MODEL, --draft, --context, --kv, --pin, and --weights, --threads, --isa, --draft-vocab, --draft-head
  /// with `lists` saying that they take several.
  void add_to(CLI::App& command, bool lists);
  /// Opens what they name; without MODEL the demonstration pair. `with_draft` false leaves the draft out.
  OpenedModels open(bool with_draft) const;
  /// Whether --draft-vocab or --draft-head was given.
  bool asks_for_draft_head() const { return !draft_vocab.empty() || !draft_head.empty(); }
  /// For commands that take one weight type, thread count and ISA.
  LoadOptions load_options() const;
  /// For commands that take lists: ISAs outermost, then weight types, thread counts, draft vocabularies, draft heads.
  /// All of them are checked before the first one runs.
  std::vector<LoadOptions> load_combinations() const;

 private:
  LoadOptions load_options(const std::string& one_weights, const std::string& one_threads, const std::string& one_isa,
                           const DraftHeadOptions& head) const;
};

/// Flags that say how tokens are chosen and where the text ends.
struct SamplingFlags {
  std::optional<double> temperature;
  std::optional<std::int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<std::uint64_t> seed;
  std::string accept = "auto";
  std::vector<std::string> stops;
  bool ignore_eos = false;

  void add_to(CLI::App& command);
  /// Fills in the request: flags first, then what the publisher recommends for sampling, then greedy.
  void apply(const GenerationConfig& config, GenerateRequest& request) const;
  /// What the publisher recommends and is not followed, or what a flag asks for and greedy decoding ignores, one line
  /// each.
  std::vector<std::string> warnings(const GenerationConfig& config) const;

 private:
  std::vector<std::string> idle_flags() const;
};

/// "1,2,3" as numbers in [low, high]; `flag` names it in errors. At least one.
std::vector<std::int64_t> parse_numbers(const std::string& text, const std::string& flag, std::int64_t low,
                                        std::int64_t high);
/// Token ids from "1,2,3".
std::vector<std::int32_t> parse_ids(const std::string& text, const std::string& flag);
/// The same from a line of JSON: its list `ids`, which must be there.
std::vector<std::int32_t> ids_of_json(const JsonObject& object);
/// "a,b" as words; none empty.
std::vector<std::string> parse_words(const std::string& text, const std::string& flag);

/// Everything on standard input.
std::string read_standard_input();
/// Throws Error naming `source` when `text` is not valid UTF-8.
void require_utf8(std::string_view text, const std::string& source);
/// `text` as the model's ids, with BOS where the tokenizer says so. Throws Error without a tokenizer, and, naming
/// `source`, for text that is not valid UTF-8.
std::vector<std::int32_t> encode_prompt(const TargetFiles& files, const std::string& text, const std::string& source);

/// Prints `json` as one line of ASCII to standard output. (Some readers take U+2028 and the like for line ends.)
void print_json_line(const Json& json);
/// `text` as one line without control characters, whatever a hostile file put into its names: they are spelled out.
std::string printable(std::string_view text);
/// Prints "drafthorse: text" as one line to standard error.
void print_note(const std::string& text);

}  // namespace drafthorse

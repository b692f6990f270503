#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/model_files.h"
#include "model/layers/draft_head.h"

namespace drafthorse {

/// A cheaper head for drafting, as asked for. None of it changes greedy or coupled text; under rejection it changes
/// which drafts are made, never the distribution of the text.
struct DraftHeadOptions {
  /// "all"; "file": the ids of draft_vocab.json in the draft's folder; a number N: the N tokens merging makes first,
  /// with all added and special ones; "": the file if it is there, else all.
  std::string vocab;
  /// Type of a copy for drafting only; nothing: as the target holds its head.
  std::optional<WeightType> type;

  /// Of the texts of --draft-vocab and --draft-head ("": the default; "target"; "q4", which is q4_0; a name of
  /// weight_type). Throws Error for anything else.
  static DraftHeadOptions parse(std::string_view vocab, std::string_view head);
  /// ", draft vocabulary 1000, draft head q4_0": what is not the default, for labels.
  std::string label() const;
};

/// Reads or makes the vocabulary. Throws Error when `options` ask for a file that is not there, for a number without a
/// tokenizer, or when the file is not an ascending list of the target's ids.
DraftHeadChoice draft_head_choice(const DraftHeadOptions& options, const TargetFiles& target, const DraftFiles& draft);

}  // namespace drafthorse

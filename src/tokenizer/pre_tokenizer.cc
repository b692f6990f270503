#include "tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "tokenizer/component.h"

namespace drafthorse {
namespace {

// The split of GPT-2, which the ByteLevel step makes when use_regex is true.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

constexpr std::size_t kStepLimit = 64;

/// Matches and the gaps between them, in order, covering all of `text`.
template <typename ForEachMatch, typename Section>
void sections_of(std::string_view text, bool invert, const ForEachMatch& for_each_match,
                 std::vector<Section>& sections) {
  sections.clear();
  std::size_t covered = 0;
  for_each_match([&](ByteRange match) {
    if (match.begin > covered) sections.push_back({{covered, match.begin}, invert});
    sections.push_back({match, !invert});
    covered = match.end;
  });
  if (covered < text.size()) sections.push_back({{covered, text.size()}, invert});
}

template <typename Visit>
void for_each_literal(std::string_view text, std::string_view literal, const Visit& visit) {
  for (std::size_t hit = 0; (hit = text.find(literal, hit)) != std::string_view::npos; hit += literal.size()) {
    visit(ByteRange{hit, hit + literal.size()});
  }
}

/// Joins each matched section to its neighbour on one side, unless the section before it (in walking order) matched
/// too.
template <typename Iterator, typename Join>
void join_matches(Iterator begin, Iterator end, const Join& join, std::vector<ByteRange>& out) {
  bool previous_matched = false;
  for (auto section = begin; section != end; ++section) {
    if (section->matched && !previous_matched && !out.empty()) {
      join(out.back(), section->range);
    } else {
      out.push_back(section->range);
    }
    previous_matched = section->matched;
  }
}

}  // namespace

PreTokenizer::PreTokenizer(const Json& component, const std::string& source) {
  if (!component.is_null()) add(component, source, "pre_tokenizer");
}

void PreTokenizer::add(const Json& json, const std::string& source, const std::string& where) {
  const Component component(json, source, where);
  if (byte_level_) component.fail("a step behind ByteLevel is not supported");
  if (component.type == "Sequence") {
    component.allow({"pretokenizers"});
    component.for_each("pretokenizers", [&](const Json& item, const std::string& path) { add(item, source, path); });
  } else if (component.type == "Split") {
    add_split(component);
  } else if (component.type == "ByteLevel") {
    add_byte_level(component);
  } else {
    component.fail_type();
  }
  if (steps_.size() > kStepLimit) component.fail("more than " + std::to_string(kStepLimit) + " steps");
}

void PreTokenizer::add_split(const Component& component) {
  static const std::map<std::string, Behavior> kBehaviors = {{"Removed", Behavior::kRemoved},
                                                             {"Isolated", Behavior::kIsolated},
                                                             {"Contiguous", Behavior::kContiguous},
                                                             {"MergedWithPrevious", Behavior::kMergedWithPrevious},
                                                             {"MergedWithNext", Behavior::kMergedWithNext}};
  component.allow({"pattern", "behavior", "invert"});
  const ComponentPattern pattern = read_pattern(component);
  Step step;
  if (pattern.kind == ComponentPattern::Kind::kRegex) {
    step.regex = std::make_unique<Regex>(pattern.text, component.source + ": " + component.where + ".pattern");
  } else {
    step.literal = pattern.text;
  }
  const auto behavior = kBehaviors.find(component.required_string("behavior"));
  if (behavior == kBehaviors.end()) component.fields.fail("behavior", "not supported");
  step.behavior = behavior->second;
  step.invert = component.fields.boolean("invert").value_or(false);
  steps_.push_back(std::move(step));
}

void PreTokenizer::add_byte_level(const Component& component) {
  component.allow({"add_prefix_space", "trim_offsets", "use_regex"});  // trim_offsets has no bearing on ids
  if (component.fields.boolean("add_prefix_space").value_or(true)) {
    component.fail("add_prefix_space = true (also its default): not supported, must be false");
  }
  if (component.fields.boolean("use_regex").value_or(true)) {
    Step step;
    step.regex = std::make_unique<Regex>(kGpt2Pattern, component.source + ": " + component.where);
    steps_.push_back(std::move(step));
  }
  byte_level_ = true;
}

PreTokenizer::Scratch::Scratch(const PreTokenizer& owner) {
  for (const Step& step : owner.steps_) {
    if (step.regex) matchers_.emplace_back(*step.regex);
  }
}

void PreTokenizer::merge_sections(Behavior behavior, const std::vector<Section>& sections,
                                  std::vector<ByteRange>& out) {
  out.clear();
  switch (behavior) {
    case Behavior::kRemoved:
      for (const Section& section : sections) {
        if (!section.matched) out.push_back(section.range);
      }
      break;
    case Behavior::kIsolated:
      for (const Section& section : sections) out.push_back(section.range);
      break;
    case Behavior::kContiguous:
      for (std::size_t i = 0; i < sections.size(); ++i) {
        if (i > 0 && sections[i].matched == sections[i - 1].matched) {
          out.back().end = sections[i].range.end;
        } else {
          out.push_back(sections[i].range);
        }
      }
      break;
    case Behavior::kMergedWithPrevious:
      join_matches(
          sections.begin(), sections.end(), [](ByteRange& a, ByteRange b) { a.end = b.end; }, out);
      break;
    case Behavior::kMergedWithNext:
      join_matches(
          sections.rbegin(), sections.rend(), [](ByteRange& a, ByteRange b) { a.begin = b.begin; }, out);
      std::reverse(out.begin(), out.end());
      break;
  }
}

void PreTokenizer::split(std::string_view text, Scratch& scratch, std::vector<Piece>& pieces) const {
  DRAFTHORSE_CHECK(text.size() <= kTextLimit);
  pieces.clear();
  if (text.empty()) return;
  pieces.push_back({0, static_cast<std::uint32_t>(text.size())});
  auto matcher = scratch.matchers_.begin();
  for (const Step& step : steps_) {
    scratch.input_.swap(pieces);
    pieces.clear();
    for (const Piece& piece : scratch.input_) {
      const std::string_view part = text.substr(piece.begin, piece.end - piece.begin);
      if (step.regex) {
        sections_of(
            part, step.invert, [&](const auto& visit) { matcher->for_each_match(part, visit); }, scratch.sections_);
      } else {
        sections_of(
            part, step.invert, [&](const auto& visit) { for_each_literal(part, step.literal, visit); },
            scratch.sections_);
      }
      merge_sections(step.behavior, scratch.sections_, scratch.ranges_);
      for (const ByteRange& range : scratch.ranges_) {
        if (range.empty()) continue;
        pieces.push_back({piece.begin + static_cast<std::uint32_t>(range.begin),
                          piece.begin + static_cast<std::uint32_t>(range.end)});
      }
    }
    if (step.regex) ++matcher;
  }
}

}  // namespace drafthorse

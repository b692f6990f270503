#include "checkpoint/name_prefix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "checkpoint/draft_names.h"
#include "support/error_text.h"

namespace drafthorse {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Tensors that have names and nothing else.
class NamesOnly final : public TensorSource {
 public:
  explicit NamesOnly(const std::vector<std::string>& names) {
    for (const std::string& name : names) tensors_[name].name = name;
  }
  const TensorView* find(std::string_view name) const override {
    const auto at = tensors_.find(name);
    return at == tensors_.end() ? nullptr : &at->second;
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const auto& item : tensors_) all.push_back(item.first);
    return all;
  }
  const std::string& path() const override { return path_; }

 private:
  std::string path_ = "weights";
  std::map<std::string, TensorView, std::less<>> tensors_;
};

TEST(NamePrefix, FindsTheTextNetworkInEveryContainer) {
  for (const char* text : {"model.", "language_model.model.", "model.language_model.", "model.language_model.model.",
                           "language_model.", ""}) {
    const NamePrefix prefix = find_name_prefix(NamesOnly({std::string(text) + "embed_tokens.weight"}));
    EXPECT_EQ(prefix.text, text);
    EXPECT_EQ(prefix.layer(3), std::string(text) + "layers.3.");
    EXPECT_EQ(prefix.final_norm(), std::string(text) + "norm.weight");
    EXPECT_TRUE(prefix.head.empty());
  }
}

TEST(NamePrefix, TheFirstHitWins) {
  EXPECT_EQ(find_name_prefix(NamesOnly({"embed_tokens.weight", "model.embed_tokens.weight"})).text, "model.");
}

TEST(NamePrefix, FindsTheHeadUnderItsThreeNames) {
  for (const char* head : {"lm_head", "language_model.lm_head", "model.lm_head"}) {
    const NamesOnly source({"model.embed_tokens.weight", std::string(head) + ".weight"});
    EXPECT_EQ(find_name_prefix(source).head, head);
  }
}

TEST(NamePrefix, SaysWhatWasTried) {
  expect_error([] { find_name_prefix(NamesOnly({"transformer.wte.weight"})); },
               {"weights", "model.embed_tokens.weight", "language_model.embed_tokens.weight"});
}

TEST(OutputHead, FollowsTheConfigAndElseTheFile) {
  const NamesOnly with({"model.embed_tokens.weight", "lm_head.weight"});
  const NamesOnly without({"model.embed_tokens.weight"});
  const auto head = [](const NamesOnly& source, std::optional<bool> tie) {
    return output_head(find_name_prefix(source), tie, source);
  };
  EXPECT_TRUE(head(with, true).tied);
  EXPECT_EQ(head(with, true).name, "model.embed_tokens.weight");
  EXPECT_EQ(head(with, true).ignored, "lm_head.weight");
  EXPECT_FALSE(head(with, false).tied);
  EXPECT_EQ(head(with, false).name, "lm_head.weight");
  EXPECT_EQ(head(with, false).ignored, "");
  EXPECT_EQ(head(with, std::nullopt).name, "lm_head.weight");
  EXPECT_TRUE(head(without, true).tied);
  EXPECT_EQ(head(without, true).ignored, "");
  EXPECT_EQ(head(without, std::nullopt).name, "model.embed_tokens.weight");
  expect_error([&] { head(without, false); }, {"weights", "lm_head.weight", "tie_word_embeddings = false"});
}

TEST(UnusedTensors, LeavesOutWhatATextLoaderMayPassOver) {
  const NamesOnly source({"a", "b", "model.visual.x", "visual.x", "vision_tower.x", "multi_modal_projector.x",
                          "model.layers.0.self_attn.rotary_emb.inv_freq", "mtp.fc.weight", "model.mtp.fc.weight",
                          "visualise"});
  EXPECT_THAT(unused_tensors(source, {"a"}), ElementsAre("b", "visualise"));
  EXPECT_THAT(unused_tensors(source, {"a", "b", "visualise"}, true),
              ElementsAre("model.mtp.fc.weight", "mtp.fc.weight"));
  EXPECT_NO_THROW(require_all_used(source, {"a", "b", "visualise"}));
  expect_error([&] { require_all_used(source, {"a"}); }, {"weights", "tensor \"b\"", "2 such"});
}

TEST(DraftNames, RecognisesBothLayoutsUnderEveryPrefix) {
  for (const std::string prefix : {"", "model.", "draft."}) {
    const DraftNames plain =
        find_draft_names(NamesOnly({prefix + "fc.weight", prefix + "hidden_norm.weight", prefix + "norm.weight"}));
    EXPECT_EQ(plain.fc, prefix + "fc");
    EXPECT_EQ(plain.hidden_norm, prefix + "hidden_norm");
    EXPECT_EQ(plain.layer(1), prefix + "layers.1.");
    const DraftNames muse = find_draft_names(
        NamesOnly({prefix + "encoder.fc.weight", prefix + "encoder.output_norm_enc.weight", prefix + "norm.weight"}));
    EXPECT_EQ(muse.fc, prefix + "encoder.fc");
    EXPECT_EQ(muse.hidden_norm, prefix + "encoder.output_norm_enc");
    EXPECT_EQ(muse.final_norm(), prefix + "norm");
  }
}

TEST(DraftNames, Error17And18NameWhatIsMissing) {
  expect_error(
      [] {
        find_draft_names(NamesOnly({"norm.weight", "hidden_norm.weight"}));
      },
      {"weights", "fc.weight", "missing"});
  expect_error(
      [] {
        find_draft_names(NamesOnly({"fc.weight", "norm.weight"}));
      },
      {"\"hidden_norm.weight\"", "missing"});
  expect_error(
      [] {
        find_draft_names(NamesOnly({"fc.weight", "hidden_norm.weight"}));
      },
      {"\"norm.weight\"", "missing"});
}

TEST(DraftNames, RefusesAVocabularyMap) {
  for (const char* name : {"d2t", "t2d", "model.d2t"}) {
    expect_error(
        [&] {
          find_draft_names(NamesOnly({"fc.weight", "hidden_norm.weight", "norm.weight", name}));
        },
        {name, "vocabulary"});
  }
}

TEST(DraftNames, BorrowedTablesAreDroppedAndStrangersRefused) {
  const NamesOnly source({"fc.weight", "embed_tokens.weight", "lm_head.weight", "model.embed_tokens.weight",
                          "layers.0.rotary_emb.inv_freq"});
  EXPECT_NO_THROW(require_all_draft_tensors_used(source, {"fc.weight"}));
  const NamesOnly strange({"fc.weight", "conf_proj.weight", "markov_w1"});
  expect_error([&] { require_all_draft_tensors_used(strange, {"fc.weight"}); }, {"conf_proj.weight", "2 such"});
}

}  // namespace
}  // namespace drafthorse

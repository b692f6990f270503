#include "tokenizer/tokenizer_file.h"

#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"

namespace drafthorse {
namespace {

/// Reads the events of one document. A tree of half a million merges would take most of the loading time and ten times
/// the file's memory, so the two lists that are that long never become one.
class Reader : public nlohmann::json_sax<Json> {
 public:
  Reader(const std::string& source, TokenizerFile& file) : source_(source), file_(file) {}

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(number_integer_t value) override {
    if (place_ == Place::kVocab) refuse_id(std::to_string(value));  // negative, or it would be unsigned
    return scalar(value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kVocab) return scalar(value);
    if (value >= static_cast<number_unsigned_t>(TokenTable::kIdLimit)) refuse_id(std::to_string(value));
    switch (file_.vocab.add(token_, static_cast<std::int32_t>(value))) {
      case TokenTable::Added::kYes:
        return true;
      case TokenTable::Added::kContentKnown:
        fail("model.vocab: duplicate key " + brief(token_));
      case TokenTable::Added::kIdKnown:
        fail("model.vocab[" + brief(token_) + "] = " + std::to_string(value) + ": " +
             brief(Json(std::string(file_.vocab.content(static_cast<std::int32_t>(value))))) + " has this id too");
    }
    return true;
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (!std::isfinite(value)) fail("the number " + text.substr(0, 40) + " is out of range");
    return scalar(value);
  }
  bool string(string_t& value) override {
    if (place_ == Place::kMerges) {
      add_merge_line(value);
    } else if (place_ == Place::kMergePair) {
      if (pair_size_ < 2) pair_[pair_size_].swap(value);
      ++pair_size_;
    } else {
      return scalar(std::move(value));
    }
    return true;
  }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override {
    if (place_ != Place::kTree) refuse_value("an object");
    if (levels_.size() == 2 && in_model_ && key_ == "vocab") {
      place_ = Place::kVocab;
      saw_vocab_ = true;
      slot_ = nullptr;
      return true;
    }
    if (levels_.size() == 1) in_model_ = key_ == "model";
    return open(Json::object());
  }
  bool end_object() override {
    if (place_ == Place::kVocab) {
      place_ = Place::kTree;
      return true;
    }
    levels_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override {
    if (place_ == Place::kMerges) {
      place_ = Place::kMergePair;
      pair_size_ = 0;
      return true;
    }
    if (place_ != Place::kTree) refuse_value("a list");
    if (levels_.size() == 2 && in_model_ && key_ == "merges") {
      place_ = Place::kMerges;
      saw_merges_ = true;
      slot_ = nullptr;
      return true;
    }
    if (levels_.size() == 1) in_model_ = false;
    return open(Json::array());
  }
  bool end_array() override {
    switch (place_) {
      case Place::kMergePair:
        if (pair_size_ != 2) refuse_merge("a list of " + std::to_string(pair_size_));
        add_merge(pair_[0], pair_[1]);
        place_ = Place::kMerges;
        return true;
      case Place::kMerges:
        place_ = Place::kTree;
        return true;
      default:
        levels_.pop_back();
        return true;
    }
  }
  bool key(string_t& name) override {
    if (place_ == Place::kVocab) {
      token_.swap(name);
      return true;
    }
    if (!levels_.back().keys.insert(name).second) fail("duplicate key " + brief(Json(name)));
    key_ = name;
    // An ordered object looks keys up one by one; appending to its vector keeps large objects linear.
    auto& object = levels_.back().node->get_ref<Json::object_t&>();
    static_cast<std::vector<Json::object_t::value_type>&>(object).emplace_back(std::move(name), Json());
    slot_ = &object.back().second;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    std::string what = error.what();
    if (const auto start = what.find("parse error"); start != std::string::npos) what = what.substr(start);
    for (char& c : what) {
      if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    }
    fail("not valid JSON at byte " + std::to_string(position) + ": " + what.substr(0, 160));
  }

  Json finish() {
    if (!root_.is_object()) fail("must be a JSON object");
    if (!saw_vocab_) fail("model.vocab: missing or not an object of token: id");
    if (!saw_merges_) fail("model.merges: missing or not a list");
    if (file_.vocab.size() == 0) fail("model.vocab: has no token");
    return std::move(root_);
  }

 private:
  enum class Place { kTree, kVocab, kMerges, kMergePair };
  struct Level {
    Json* node;
    std::set<std::string> keys;
  };

  [[noreturn]] void fail(const std::string& what) const { throw Error(source_ + ": " + what); }
  [[noreturn]] void refuse_id(const std::string& value) const {
    fail("model.vocab[" + brief(token_) + "] = " + value + ": must be a token id from 0 to " +
         std::to_string(TokenTable::kIdLimit - 1));
  }
  [[noreturn]] void refuse_merge(const std::string& value) const {
    fail("model.merges[" + std::to_string(file_.merges.size()) + "] = " + value +
         ": must be \"left right\" or [\"left\", \"right\"]");
  }
  /// A value of a kind that has no place in vocab or merges.
  [[noreturn]] void refuse_value(const std::string& value) const {
    if (place_ == Place::kVocab) refuse_id(value);
    refuse_merge(value);
  }

  bool scalar(Json&& value) {
    if (place_ != Place::kTree) refuse_value(brief(value));
    put(std::move(value));
    return true;
  }
  Json* put(Json&& value) {
    if (levels_.empty()) return &(root_ = std::move(value));
    if (slot_ != nullptr) {
      *slot_ = std::move(value);
      return std::exchange(slot_, nullptr);
    }
    auto& list = levels_.back().node->get_ref<Json::array_t&>();
    list.push_back(std::move(value));
    return &list.back();
  }
  bool open(Json&& value) {
    if (static_cast<int>(levels_.size()) >= JsonLimits().depth) {
      fail("nested deeper than " + std::to_string(JsonLimits().depth) + " levels");
    }
    levels_.push_back({put(std::move(value)), {}});
    return true;
  }

  void add_merge_line(const std::string& line) {
    if (line.starts_with("#version")) return;
    const std::size_t space = line.find(' ');
    if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos) refuse_merge(brief(line));
    add_merge(std::string_view(line).substr(0, space), std::string_view(line).substr(space + 1));
  }
  void add_merge(std::string_view left, std::string_view right) {
    if (left.empty() || right.empty()) refuse_merge(brief(Json(Json::array({std::string(left), std::string(right)}))));
    file_.merges.add(left, right);
  }

  const std::string& source_;
  TokenizerFile& file_;
  Json root_;
  std::vector<Level> levels_;
  Json* slot_ = nullptr;  // where the value of the last key goes
  std::string key_;       // the last key of the tree
  Place place_ = Place::kTree;
  bool in_model_ = false;  // the tree is inside the top object's "model"
  bool saw_vocab_ = false;
  bool saw_merges_ = false;
  std::string token_;  // the last key of vocab
  std::string pair_[2];
  std::size_t pair_size_ = 0;
};

}  // namespace

TokenizerFile TokenizerFile::read(std::string_view text, const std::string& source) {
  if (text.size() > JsonLimits().bytes) {
    throw Error(source + ": " + std::to_string(text.size()) + " bytes of JSON, more than the limit of " +
                std::to_string(JsonLimits().bytes));
  }
  TokenizerFile file;
  Reader reader(source, file);
  Json::sax_parse(text, &reader);
  file.rest = reader.finish();
  return file;
}

}  // namespace drafthorse

#include "cupel/text/tokenizer_file.h"

#include <limits>
#include <unordered_map>

#include <fmt/format.h>
#include <simdjson.h>

#include "cupel/base/error.h"
#include "cupel/text/byte_alphabet.h"
#include "cupel/text/pretokenizer.h"
#include "cupel/text/utf8.h"

namespace cupel {
namespace {

using simdjson::dom::element;

// A value as an error message shows it.
std::string describe(const element& value) {
  constexpr std::size_t kShown = 80;
  std::string text = simdjson::minify(value);
  if (text.size() <= kShown) return text;
  return std::string(valid_utf8_prefix(std::string_view(text).substr(0, kShown))) + "...";
}

// A place in the file. The path is a pointer chain, put into words only for an error: a vocabulary
// has more than 100,000 fields.
class Place {
 public:
  explicit Place(std::string_view file) : file_(file) {}
  Place(const Place& parent, std::string_view key) : parent_(&parent), key_(key) {}
  Place(const Place& parent, std::size_t index)
      : parent_(&parent), index_(static_cast<std::int64_t>(index)) {}

  std::string path() const {
    if (parent_ == nullptr) return "";
    const std::string parent = parent_->path();
    if (index_ >= 0) return fmt::format("{}[{}]", parent, index_);
    return parent.empty() ? std::string(key_) : fmt::format("{}.{}", parent, key_);
  }
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    const Place* root = this;
    while (root->parent_ != nullptr) root = root->parent_;
    const std::string field = path();
    throw InputError(
        field.empty() ? std::string(root->file_) : fmt::format("{}: {}", root->file_, field),
        expected, found);
  }
  [[noreturn]] void fail(std::string_view expected, const element& found) const {
    fail(expected, describe(found));
  }

 private:
  std::string_view file_;
  const Place* parent_ = nullptr;
  std::string_view key_;
  std::int64_t index_ = -1;
};

// A value and its place. Places refer to their parents: a Field lives no longer than the one it
// was taken from.
struct Field {
  Place place;
  element value;

  bool has(std::string_view key) const {
    element child;
    return value.at_key(key).get(child) == simdjson::SUCCESS && !child.is_null();
  }
  Field operator[](std::string_view key) const {
    const Place child_place(place, key);
    if (!value.is_object()) place.fail("an object", value);
    element child;
    if (value.at_key(key).get(child) != simdjson::SUCCESS) child_place.fail("a value", "no field");
    return {child_place, child};
  }
  std::string_view string() const {
    std::string_view text;
    if (value.get_string().get(text) != simdjson::SUCCESS) place.fail("a string", value);
    return text;
  }
  bool boolean() const {
    bool flag = false;
    if (value.get_bool().get(flag) != simdjson::SUCCESS) place.fail("true or false", value);
    return flag;
  }
  std::int32_t id() const {
    constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max() - 1;
    std::int64_t id = -1;
    // get_int64 accepts neither a fraction nor a number above 2^63 - 1.
    if (value.get_int64().get(id) != simdjson::SUCCESS || id < 0 || id > kLargest) {
      place.fail(fmt::format("an integer from 0 to {}", kLargest), value);
    }
    return static_cast<std::int32_t>(id);
  }
  simdjson::dom::array array() const {
    simdjson::dom::array items;
    if (value.get_array().get(items) != simdjson::SUCCESS) place.fail("a list", value);
    return items;
  }
  simdjson::dom::object object() const {
    simdjson::dom::object fields;
    if (value.get_object().get(fields) != simdjson::SUCCESS) place.fail("an object", value);
    return fields;
  }
  void require_text(std::string_view key, std::string_view text) const {
    const Field child = (*this)[key];
    if (child.string() != text) child.place.fail(fmt::format("\"{}\"", text), child.value);
  }
  void require_flag(std::string_view key, bool flag) const {
    const Field child = (*this)[key];
    if (child.boolean() != flag) child.place.fail(flag ? "true" : "false", child.value);
  }
  // Optional: missing and null stand for false.
  bool flag(std::string_view key) const { return has(key) && (*this)[key].boolean(); }
};

// Missing, null, or a sequence of nothing.
void check_normalizer(const Field& root) {
  if (!root.has("normalizer")) return;
  const Field normalizer = root["normalizer"];
  if (normalizer["type"].string() != "Sequence" ||
      normalizer["normalizers"].array().begin() != normalizer["normalizers"].array().end()) {
    normalizer.place.fail("no normalizer", normalizer.value);
  }
}

// kSplitPatterns spells CR and LF as escapes; in a character class the characters mean the same.
std::string escape_newlines(std::string_view pattern) {
  std::string out;
  for (const char c : pattern) {
    if (c == '\r') {
      out += "\\r";
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

void check_pre_tokenizer(const Field& root) {
  const Field sequence = root["pre_tokenizer"];
  if (sequence.value.is_null()) {
    sequence.place.fail("the DeepSeek V3 sequence of three Splits and ByteLevel", "null");
  }
  sequence.require_text("type", "Sequence");
  const Field steps = sequence["pretokenizers"];
  const simdjson::dom::array items = steps.array();
  if (items.size() != kSplitPatterns.size() + 1) {
    steps.place.fail("three Splits and ByteLevel", steps.value);
  }
  std::size_t index = 0;
  for (const element item : items) {
    const Field step{Place(steps.place, index), item};
    if (index < kSplitPatterns.size()) {
      step.require_text("type", "Split");
      const Field split_pattern = step["pattern"];
      const Field pattern = split_pattern["Regex"];
      if (escape_newlines(pattern.string()) != kSplitPatterns[index]) {
        pattern.place.fail(kSplitPatterns[index], pattern.string());
      }
      step.require_text("behavior", "Isolated");
      step.require_flag("invert", false);
    } else {
      step.require_text("type", "ByteLevel");
      step.require_flag("add_prefix_space", false);
      step.require_flag("use_regex", false);
    }
    ++index;
  }
}

// ByteLevel here only trims the offsets of a token; others add tokens of their own.
void check_post_processor(const Field& root) {
  if (root.has("post_processor")) root["post_processor"].require_text("type", "ByteLevel");
}

void check_model_options(const Field& model) {
  model.require_text("type", "BPE");
  if (model.has("dropout")) {
    const Field dropout = model["dropout"];
    double probability = 1;
    if (dropout.value.get_double().get(probability) != simdjson::SUCCESS || probability != 0) {
      dropout.place.fail("no dropout", dropout.value);
    }
  }
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (model.has(key)) model.require_text(key, "");
  }
  // Every byte has a token, so that unk_token and fuse_unk never apply.
  if (model.flag("byte_fallback")) {
    model["byte_fallback"].place.fail("false (bytes are in the byte-level alphabet)", "true");
  }
}

// Both directions of the vocabulary. The texts are views of the parsed JSON.
struct TokenIndex {
  std::unordered_map<std::string_view, std::int32_t> ids;
  std::unordered_map<std::int32_t, std::string_view> texts;
};

TokenIndex read_vocabulary(const Field& model, TokenizerFile& file) {
  TokenIndex index;
  const Field vocabulary = model["vocab"];
  for (const auto [token, value] : vocabulary.object()) {
    const Field entry{Place(vocabulary.place, token), value};
    const std::int32_t id = entry.id();
    if (!index.ids.emplace(token, id).second) entry.place.fail("one entry", "two of this token");
    const auto [other, fresh] = index.texts.emplace(id, token);
    if (!fresh) {
      entry.place.fail("an id of its own", fmt::format("{}, the id of \"{}\"", id, other->second));
    }
    file.vocabulary.emplace_back(token, id);
  }
  for (int byte = 0; byte < 256; ++byte) {
    const std::string token = byte_to_alphabet(static_cast<std::uint8_t>(byte));
    const auto found = index.ids.find(token);
    if (found == index.ids.end()) {
      vocabulary.place.fail("a token for every byte",
                            fmt::format("none for byte {:#04x}, \"{}\"", byte, token));
    }
    file.byte_ids[static_cast<std::size_t>(byte)] = found->second;
  }
  return index;
}

// The two tokens of an entry of the merge list, which has two spellings.
std::pair<std::string_view, std::string_view> merged_pair(const Field& merge) {
  constexpr std::string_view kForm = R"(two tokens, as "a b" or ["a", "b"])";
  std::string_view left;
  std::string_view right;
  if (merge.value.is_array()) {
    const simdjson::dom::array pair = merge.array();
    if (pair.size() != 2) merge.place.fail(kForm, merge.value);
    left = Field{Place(merge.place, std::size_t{0}), *pair.begin()}.string();
    right = Field{Place(merge.place, std::size_t{1}), *++pair.begin()}.string();
  } else if (merge.value.is_string()) {
    const std::string_view text = merge.string();
    const std::size_t space = text.find(' ');
    if (space != text.rfind(' ') || space == std::string_view::npos) {
      merge.place.fail(kForm, merge.value);
    }
    left = text.substr(0, space);
    right = text.substr(space + 1);
  }
  if (left.empty() || right.empty()) merge.place.fail(kForm, merge.value);
  return {left, right};
}

void read_merges(const Field& model, const TokenIndex& tokens, TokenizerFile& file) {
  std::unordered_map<std::uint64_t, std::size_t> places;
  const Field merges = model["merges"];
  std::size_t index = 0;
  for (const element item : merges.array()) {
    const Field merge{Place(merges.place, index), item};
    const auto [left, right] = merged_pair(merge);
    const auto id_of = [&](std::string_view token) {
      const auto found = tokens.ids.find(token);
      if (found == tokens.ids.end()) {
        merge.place.fail("tokens of the vocabulary", fmt::format("\"{}\"", token));
      }
      return found->second;
    };
    const BytePairEncoder::Merge ids{id_of(left), id_of(right),
                                     id_of(std::string(left) + std::string(right))};
    const std::uint64_t key =
        static_cast<std::uint64_t>(ids.left) << 32 | static_cast<std::uint32_t>(ids.right);
    if (const auto [first, fresh] = places.emplace(key, index); !fresh) {
      merge.place.fail("a pair of its own", fmt::format("the pair of merges[{}]", first->second));
    }
    file.merges.push_back(ids);
    ++index;
  }
}

void read_added_tokens(const Field& root, TokenIndex& tokens, TokenizerFile& file) {
  if (!root.has("added_tokens")) return;
  std::unordered_map<std::string_view, std::size_t> seen;
  const Field list = root["added_tokens"];
  std::size_t index = 0;
  for (const element item : list.array()) {
    const Field token{Place(list.place, index), item};
    const Field content = token["content"];
    const std::string_view text = content.string();
    const std::int32_t id = token["id"].id();
    if (text.empty()) content.place.fail("a token's text", "\"\"");
    for (const std::string_view key : {"single_word", "lstrip", "rstrip"}) {
      if (token.flag(key)) token[key].place.fail("false (tokens match their text alone)", "true");
    }
    if (const auto [first, fresh] = seen.emplace(text, index); !fresh) {
      content.place.fail("a token of its own",
                         fmt::format("the text of added_tokens[{}]", first->second));
    }
    const std::int32_t known_id = tokens.ids.emplace(text, id).first->second;
    const std::string_view known_text = tokens.texts.emplace(id, text).first->second;
    if (known_id != id) {
      token["id"].place.fail(fmt::format("{}, its id in the vocabulary", known_id),
                             std::to_string(id));
    }
    if (known_text != text) {
      token["id"].place.fail("an id of its own",
                             fmt::format("{}, the id of \"{}\"", id, known_text));
    }
    file.added_tokens.push_back({id, std::string(text), token.flag("normalized")});
    ++index;
  }
}

}  // namespace

TokenizerFile parse_tokenizer_file(std::string_view json, std::string_view where) {
  simdjson::dom::parser parser;
  element document;
  const Place file_place(where);
  if (const auto error = parser.parse(json.data(), json.size()).get(document);
      error != simdjson::SUCCESS) {
    file_place.fail("JSON", simdjson::error_message(error));
  }
  const Field root{file_place, document};
  if (!document.is_object()) file_place.fail("an object", document);

  TokenizerFile file;
  check_normalizer(root);
  check_pre_tokenizer(root);
  check_post_processor(root);
  root["decoder"].require_text("type", "ByteLevel");
  const Field model = root["model"];
  check_model_options(model);
  file.ignore_merges = model.flag("ignore_merges");
  TokenIndex tokens = read_vocabulary(model, file);
  read_merges(model, tokens, file);
  read_added_tokens(root, tokens, file);
  return file;
}

}  // namespace cupel

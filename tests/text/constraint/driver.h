// Follows a constraint without a model: tokens at random, or those of a given text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/random.h"
#include "text/random_text.h"
#include "text/small_tokenizer.h"
#include <nlohmann/json.hpp>

#include "cupel/text/constraint/grammar_constraint.h"
#include "cupel/text/constraint/json_schema.h"

namespace cupel::test {

// Every byte, and tokens as large vocabularies have them: several JSON signs at once, parts of code
// points, whole words, digits, long runs.
inline const std::shared_ptr<const ConstraintVocabulary>& mixed_vocabulary() {
  static const auto vocabulary = [] {
    nlohmann::json file = small_tokenizer();
    auto& ids = file["model"]["vocab"];
    RandomText random(7);
    const std::vector<std::string_view> parts = {
        "\"",       "\":",      "\",",  "{\"", "\"}",  "},",  "]}",    "[",     "]",
        "{",        "}",        ":",    ",",   " ",    "\\",  "\\\"",  "\\u",   "00",
        "d8",       "3d",       "a",    "b",   "the",  "id",  "name",  "value", "1",
        "23",       "-",        ".5",   "e",   "true", "fal", "se",    "nu",    "ll",
        "\n",       "\t",       "  ",   "é",   "ß",    "日",  "本",    "😀",    "\xF0\x9F",
        "\x98\x80", "\xE6\x97", "\xA5", "k",   "left", "red", "größe", "foo",   "-1"};
    while (ids.size() < 3000) {
      const std::string bytes = random.pick(parts, 1 + random.below(5));
      std::string text;
      for (const char c : bytes) text += byte_to_alphabet(static_cast<std::uint8_t>(c));
      if (!ids.contains(text)) ids[text] = ids.size();
    }
    file["added_tokens"].push_back(added_token(3000, "<call>"));
    return std::make_shared<const ConstraintVocabulary>(Tokenizer(file.dump(), "mixed"));
  }();
  return vocabulary;
}

inline bool bit(std::span<const std::uint64_t> mask, std::size_t id) {
  return id / 64 < mask.size() && (mask[id / 64] >> (id % 64) & 1) != 0;
}

inline std::vector<std::int32_t> ids_of(std::span<const std::uint64_t> mask) {
  std::vector<std::int32_t> ids;
  for (std::size_t id = 0; id < mask.size() * 64; ++id) {
    if (bit(mask, id)) ids.push_back(static_cast<std::int32_t>(id));
  }
  return ids;
}

inline std::shared_ptr<const TokenConstraint> schema_constraint(
    const nlohmann::ordered_json& schema,
    std::shared_ptr<const ConstraintVocabulary> vocabulary = mixed_vocabulary()) {
  Grammar grammar;
  grammar.set_root(add_json_schema(grammar, schema, "schema"));
  return make_constraint(std::move(grammar), std::move(vocabulary), "schema");
}

// What an engine does with random logits: every token is as likely as any other, the end too; the
// last of `limit` tokens is the end. Nothing if the output was not complete by then.
inline std::optional<std::string> random_output(const TokenConstraint& constraint,
                                                const ConstraintVocabulary& vocabulary,
                                                Random& random, std::size_t limit) {
  std::string text;
  const auto state = constraint.start();
  for (std::size_t room = limit - 1;; --room) {
    const std::vector<std::int32_t> ids = ids_of(state->allowed(room));
    if (state->can_end() && (ids.empty() || random.below(4) == 0)) return text;
    if (ids.empty() || room == 0) return std::nullopt;
    std::int32_t id = ids[random.below(ids.size())];
    // Strings would seldom end otherwise.
    if (random.below(3) == 0) {
      for (int i = 0; i < 20 && vocabulary.bytes(id).find('"') == std::string_view::npos; ++i) {
        id = ids[random.below(ids.size())];
      }
    }
    text += vocabulary.bytes(id);
    state->advance(id);
  }
}

// Takes the text in tokens chosen at random among those that fit. Empty if all were allowed and the
// end is too; otherwise what was not.
inline std::string refused(const TokenConstraint& constraint,
                           const ConstraintVocabulary& vocabulary, std::string_view text,
                           Random& random) {
  const auto state = constraint.start();
  for (std::size_t at = 0; at < text.size();) {
    const auto mask = state->allowed(1'000'000);
    std::vector<std::int32_t> fitting;
    for (std::int32_t id = 0; static_cast<std::size_t>(id) < vocabulary.words() * 64; ++id) {
      if (vocabulary.has(id) && text.substr(at).starts_with(vocabulary.bytes(id))) {
        fitting.push_back(id);
      }
    }
    const std::int32_t id = fitting[random.below(fitting.size())];
    const std::string_view bytes = vocabulary.bytes(id);
    if (!bit(mask, static_cast<std::size_t>(id))) {
      return std::string(text.substr(0, at)) + " | " + std::string(bytes);
    }
    state->advance(id);
    at += bytes.size();
  }
  return state->can_end() ? "" : std::string(text) + " | the end";
}

}  // namespace cupel::test

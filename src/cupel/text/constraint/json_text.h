// JSON's own syntax as expressions: strings, numbers, members, values of any kind.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cupel/text/constraint/characters.h"
#include "cupel/text/constraint/grammar.h"
#include "cupel/text/constraint/json_schema.h"

namespace cupel {

// Expressions are made once and shared.
class JsonText {
 public:
  JsonText(Grammar& grammar, const JsonStyle& style);

  Grammar& grammar() { return grammar_; }
  ExprId comma() const { return comma_; }
  ExprId colon() const { return colon_; }
  ExprId quote() const { return quote_; }

  // A string of so many code points, each as it stands or in any of its escapes; U+0000 not.
  ExprId string(std::uint32_t min, std::uint32_t max);
  // One code point of a set in its usual form: as it stands, or the short escape where it needs
  // one.
  ExprId usual_character(const CharSet& set);
  ExprId any_usual_character() const { return any_usual_; }
  // A string, in usual form, that is none of `names`.
  ExprId string_but(std::span<const std::string> names);

  ExprId boolean() const { return boolean_; }
  ExprId null() const { return null_; }
  ExprId integer() const { return integer_; }  // of at most 18 digits, so that it fits 64 bits
  // At most 18 digits, 17 after the point, and an exponent of two.
  ExprId number() const { return number_; }
  // Any value whose arrays and objects nest at most so deep.
  ExprId value(int depth);
  ExprId array(ExprId item, std::uint32_t min, std::uint32_t max);
  ExprId free_object(int depth);
  ExprId free_array(int depth);

 private:
  ExprId digits(std::uint32_t min, std::uint32_t max);
  ExprId any_character();
  ExprId string_but(std::span<const std::u32string> sorted, std::size_t skip);

  Grammar& grammar_;
  ExprId comma_ = 0, colon_ = 0, quote_ = 0, boolean_ = 0, null_ = 0, digit_ = 0, integer_ = 0,
         number_ = 0, any_ = 0, any_usual_ = 0;
  std::array<std::optional<ExprId>, kFreeDepth + 1> values_;
};

// A text's code points; it must be valid UTF-8.
std::u32string code_points(std::string_view text);

}  // namespace cupel

// The form that a chat's answer must have, as a constraint on its tokens.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cupel/text/chat/message.h"
#include "cupel/text/constraint/vocabulary.h"
#include "cupel/text/token_constraint.h"
#include "cupel/text/tokenizer.h"

namespace cupel {

struct OutputForm {
  bool thinking = false;  // reasoning and </think> come first, in any words

  // At most one of the two.
  std::optional<ChatJson> schema;  // the content is JSON of it
  bool any_object = false;         // the content is any JSON object

  // Calls of these tools instead of content; with a schema, or any_object: calls or content.
  std::vector<ChatTool> tools;
  bool parallel_calls = true;  // one after the other

  bool constrains() const { return schema || any_object || !tools.empty(); }
};

// Only if it constrains. Calls have the form of spec section 6.2: parameters in the order in which
// the tool declares them; a parameter that is any string is raw text without "<", others are JSON
// of their schema. Throws InputError where a schema, or a tool's parameters, are not supported.
std::shared_ptr<const TokenConstraint> make_output_form(
    const OutputForm& form, const Tokenizer& tokenizer,
    std::shared_ptr<const ConstraintVocabulary> vocabulary);

// Of any JSON text: of /generate's json_schema. Throws InputError.
std::shared_ptr<const TokenConstraint> make_schema_form(
    const ChatJson& schema, std::shared_ptr<const ConstraintVocabulary> vocabulary,
    std::string_view where);

}  // namespace cupel

#include "cupel/server/output_form.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/text/chat/special_tokens.h"
#include "cupel/text/constraint/after_token.h"
#include "cupel/text/constraint/grammar.h"
#include "cupel/text/constraint/grammar_constraint.h"
#include "cupel/text/constraint/json_schema.h"

namespace cupel {
namespace {

constexpr std::uint32_t kMostCalls = 64;

class FormBuilder {
 public:
  FormBuilder(Grammar& grammar, const Tokenizer& tokenizer)
      : grammar_(grammar), tokenizer_(tokenizer) {}

  ExprId build(const OutputForm& form) {
    std::vector<ExprId> answers;
    if (form.schema) {
      answers.push_back(add_json_schema(grammar_, *form.schema, "response_format"));
    } else if (form.any_object) {
      answers.push_back(add_json_object(grammar_));
    }
    if (!form.tools.empty()) answers.push_back(calls(form));
    return grammar_.choice(answers);
  }

 private:
  // A text in which added tokens stand for themselves.
  ExprId tagged(std::string_view text) {
    std::vector<ExprId> parts;
    std::string plain;
    const auto end_plain = [&] {
      if (!plain.empty()) parts.push_back(grammar_.literal(plain));
      plain.clear();
    };
    for (const std::int32_t id : tokenizer_.encode(text)) {
      if (tokenizer_.is_added(id)) {
        end_plain();
        parts.push_back(grammar_.token(id));
      } else {
        plain += tokenizer_.token_bytes(id);
      }
    }
    end_plain();
    return grammar_.sequence(parts);
  }

  ExprId calls(const OutputForm& form) {
    std::vector<ExprId> of_tools;
    of_tools.reserve(form.tools.size());
    for (const ChatTool& tool : form.tools) of_tools.push_back(call(tool));
    const ExprId one = grammar_.sequence({grammar_.choice(of_tools), grammar_.literal("\n")});
    return grammar_.sequence({tagged(fmt::format("\n\n{}\n", kToolCallsTag)),
                              grammar_.repeat(one, 1, form.parallel_calls ? kMostCalls : 1),
                              tagged(kEndToolCallsTag)});
  }

  ExprId call(const ChatTool& tool) {
    const std::string where = fmt::format("tools, {}, parameters", tool.name);
    std::vector<ExprId> parts = {
        tagged(fmt::format("{}{}{}\n", kInvokeTag, tool.name, kEndOfName))};
    const auto found = tool.function.find("parameters");
    const bool any = found != tool.function.end() && found->is_object();
    const ChatJson parameters = any ? *found : ChatJson::object();
    check(parameters, where);
    const ChatJson properties = parameters.value("properties", ChatJson::object());
    const ChatJson required = parameters.value("required", ChatJson::array());
    for (const auto& member : properties.items()) {
      const ExprId one =
          parameter(member.key(), with_definitions(member.value(), parameters), where);
      const bool must = std::find(required.begin(), required.end(), member.key()) != required.end();
      parts.push_back(must ? one : grammar_.optional(one));
    }
    if (properties.empty()) parts.push_back(grammar_.literal("\n"));
    parts.push_back(tagged(kEndInvokeTag));
    return grammar_.sequence(parts);
  }

  // What cannot be written parameter by parameter is refused.
  static void check(const ChatJson& parameters, const std::string& where) {
    static const std::set<std::string> kKnown = {
        "type",    "properties",  "required", "additionalProperties",
        "$defs",   "definitions", "title",    "description",
        "$schema", "default",     "examples"};
    for (const auto& member : parameters.items()) {
      if (kKnown.count(member.key()) == 0) {
        throw InputError(where, "an object's properties, for tool_choice",
                         "\"" + member.key() + "\"");
      }
    }
    if (parameters.contains("type") && parameters["type"] != "object") {
      throw InputError(where, "an object", parameters["type"].dump());
    }
    if (parameters.contains("properties") && !parameters["properties"].is_object()) {
      throw InputError(where, "properties as an object", parameters["properties"].dump());
    }
    if (!parameters.contains("required")) return;
    const ChatJson& required = parameters["required"];
    const ChatJson properties = parameters.value("properties", ChatJson::object());
    if (!required.is_array()) throw InputError(where, "required as a list", required.dump());
    for (const ChatJson& name : required) {
      if (!name.is_string() || !properties.contains(name.get<std::string>())) {
        throw InputError(where, "required names of properties", name.dump());
      }
    }
  }

  static ChatJson with_definitions(ChatJson schema, const ChatJson& parameters) {
    if (!schema.is_object()) return schema;
    for (const char* key : {"$defs", "definitions"}) {
      if (parameters.contains(key) && !schema.contains(key)) schema[key] = parameters[key];
    }
    return schema;
  }

  // Nothing but its type is said of it.
  static bool any_string(const ChatJson& schema) {
    static const std::set<std::string> kSilent = {"type",     "title", "description", "default",
                                                  "examples", "$defs", "definitions"};
    if (!schema.is_object() || schema.value("type", ChatJson()) != "string") return false;
    const auto items = schema.items();
    return std::all_of(items.begin(), items.end(),
                       [](const auto& member) { return kSilent.count(member.key()) > 0; });
  }

  ExprId parameter(const std::string& name, const ChatJson& schema, const std::string& where) {
    const bool raw = any_string(schema);
    const ExprId value =
        raw ? grammar_.repeat(grammar_.bytes(ByteSet().set().reset('<')), 0, Grammar::kUnbounded)
            : add_json_schema(grammar_, schema, fmt::format("{}, {}", where, name));
    return grammar_.sequence({tagged(fmt::format("{}{}{}", kParameterTag, name,
                                                 raw ? kStringParameter : kJsonParameter)),
                              value, tagged(kEndParameterTag), grammar_.literal("\n")});
  }

  Grammar& grammar_;
  const Tokenizer& tokenizer_;
};

}  // namespace

std::shared_ptr<const TokenConstraint> make_output_form(
    const OutputForm& form, const Tokenizer& tokenizer,
    std::shared_ptr<const ConstraintVocabulary> vocabulary) {
  Grammar grammar;
  const ExprId root = FormBuilder(grammar, tokenizer).build(form);
  grammar.set_root(root);
  auto answer =
      make_constraint(std::move(grammar), std::move(vocabulary), "response_format, tools");
  if (!form.thinking) return answer;
  return after_token(end_think_token(tokenizer), tokenizer.id_limit(), std::move(answer));
}

std::shared_ptr<const TokenConstraint> make_schema_form(
    const ChatJson& schema, std::shared_ptr<const ConstraintVocabulary> vocabulary,
    std::string_view where) {
  Grammar grammar;
  grammar.set_root(add_json_schema(grammar, schema, where));
  return make_constraint(std::move(grammar), std::move(vocabulary), where);
}

}  // namespace cupel

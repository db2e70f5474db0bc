#include "cupel/text/chat/openai_messages.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cupel/base/error.h"
#include "cupel/text/chat/python_json.h"
#include "cupel/text/utf8.h"

namespace cupel {
namespace {

std::string describe(const ChatJson& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  constexpr std::size_t kShown = 60;
  std::string text = value.dump(-1, ' ', false, ChatJson::error_handler_t::replace);
  if (text.size() <= kShown) return text;
  return std::string(valid_utf8_prefix(std::string_view(text).substr(0, kShown))) + "...";
}

// A JSON value and how errors call it.
class Field {
 public:
  Field(const ChatJson& value, std::string where) : value_(&value), where_(std::move(where)) {}

  // A member that is missing reads as null.
  Field member(const char* key) const {
    static const ChatJson missing;
    const auto found = object().find(key);
    return {found == object().end() ? missing : *found, where_ + "." + key};
  }
  std::vector<Field> elements() const {
    if (!value_->is_array()) wrong("an array");
    std::vector<Field> fields;
    for (std::size_t i = 0; i < value_->size(); ++i) {
      fields.emplace_back((*value_)[i], where_ + "[" + std::to_string(i) + "]");
    }
    return fields;
  }
  const ChatJson& object() const {
    if (!value_->is_object()) wrong("an object");
    return *value_;
  }
  const std::string& string(const char* expected = "a string") const {
    if (!value_->is_string()) wrong(expected);
    return value_->get_ref<const std::string&>();
  }
  std::string string_or_empty() const { return is_null() ? "" : string(); }
  bool boolean_or_false() const {
    if (!is_null() && !value_->is_boolean()) wrong("true or false");
    return !is_null() && value_->get<bool>();
  }
  bool is_null() const { return value_->is_null(); }
  const ChatJson& value() const { return *value_; }
  const std::string& where() const { return where_; }
  [[noreturn]] void wrong(std::string_view expected) const {
    throw InputError(where_, expected, is_null() ? "none" : describe(*value_));
  }

 private:
  const ChatJson* value_;
  std::string where_;
};

std::string read_content(const Field& field, bool other_parts) {
  if (!field.value().is_array()) return field.string("a string or an array of parts");
  std::string text;
  bool first = true;
  for (const Field& part : field.elements()) {
    if (!std::exchange(first, false)) text += "\n\n";
    const std::string& type = part.member("type").string();
    if (type == "text") {
      text += part.member("text").string();
    } else if (other_parts) {
      text += "[Unsupported " + type + "]";
    } else {
      part.member("type").wrong("\"text\"");
    }
  }
  return text;
}

void check_function_type(const Field& owner) {
  const Field type = owner.member("type");
  if (!type.is_null() && type.value() != "function") type.wrong("\"function\"");
}

ToolCall read_tool_call(const Field& field) {
  check_function_type(field);
  const Field function = field.member("function");
  const Field arguments = function.member("arguments");
  ToolCall call;
  call.id = field.member("id").string_or_empty();
  call.name = function.member("name").string();
  // Some clients hand the object itself back.
  call.arguments =
      arguments.value().is_object() ? python_json(arguments.value()) : arguments.string();
  return call;
}

void read_instructions(const Field& field, ChatMessage& message) {
  const bool allowed = message.role == ChatRole::kSystem || message.role == ChatRole::kDeveloper;
  for (const char* key : {"tools", "response_format"}) {
    const Field member = field.member(key);
    if (!allowed && !member.is_null()) {
      throw InputError(member.where(), "it in a system or developer message",
                       std::string(role_name(message.role)) + " message");
    }
  }
  if (const Field tools = field.member("tools"); !tools.is_null()) {
    message.tools = tools_from_openai(tools.value(), tools.where());
  }
  if (const Field format = field.member("response_format"); !format.is_null()) {
    message.response_format = format.object();
  }
}

void read_assistant(const Field& field, ChatMessage& message) {
  const Field reasoning = field.member("reasoning_content");
  message.reasoning_content =
      (reasoning.is_null() ? field.member("reasoning") : reasoning).string_or_empty();
  if (const Field calls = field.member("tool_calls"); !calls.is_null()) {
    for (const Field& call : calls.elements()) message.tool_calls.push_back(read_tool_call(call));
  }
  message.without_eos = field.member("wo_eos").boolean_or_false();
}

ChatMessage read_message(const Field& field) {
  constexpr const char* kRoles = "system, developer, user, assistant, tool or latest_reminder";
  ChatMessage message;
  const Field role = field.member("role");
  const auto known = role_from_name(role.string(kRoles));
  if (!known) role.wrong(kRoles);
  message.role = *known;
  read_instructions(field, message);
  if (message.role == ChatRole::kAssistant) read_assistant(field, message);

  const bool tool = message.role == ChatRole::kTool;
  if (tool) message.tool_call_id = field.member("tool_call_id").string_or_empty();
  const Field content = field.member("content");
  const bool may_lack_content =
      tool || !message.reasoning_content.empty() || !message.tool_calls.empty();
  if (!content.is_null() || !may_lack_content) message.content = read_content(content, tool);
  if (message.role == ChatRole::kDeveloper && message.content.empty()) {
    content.wrong("content that is not empty");
  }

  if (const Field task = field.member("task"); !task.is_null()) {
    constexpr const char* kTasks = "action, query, authority, domain, title or read_url";
    message.task = task_from_name(task.string(kTasks));
    if (!message.task) task.wrong(kTasks);
  }
  return message;
}

}  // namespace

ChatJson parse_chat_json(std::string_view text, std::string_view where, int max_depth) {
  const auto check_depth = [&](int depth, ChatJson::parse_event_t event, ChatJson& /*value*/) {
    const bool opens = event == ChatJson::parse_event_t::object_start ||
                       event == ChatJson::parse_event_t::array_start;
    if (opens && depth >= max_depth) {
      throw InputError(where, "nesting of at most " + std::to_string(max_depth), "deeper");
    }
    return true;
  };
  try {
    // The library takes a NUL for the end of the text.
    if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
      throw InputError(std::string(where) + " byte " + std::to_string(nul + 1), "JSON in UTF-8",
                       "a NUL");
    }
    return ChatJson::parse(text, check_depth);
  } catch (const ChatJson::parse_error& error) {
    throw InputError(std::string(where) + " byte " + std::to_string(error.byte), "JSON in UTF-8",
                     "other text");
  } catch (const ChatJson::out_of_range&) {
    throw InputError(where, "numbers of double precision", "a larger one");
  }
}

std::vector<ChatMessage> messages_from_openai(const ChatJson& messages, std::string_view where) {
  std::vector<ChatMessage> result;
  for (const Field& field : Field(messages, std::string(where)).elements()) {
    result.push_back(read_message(field));
  }
  if (result.empty()) throw InputError(where, "at least one message", "none");
  return result;
}

std::vector<ChatTool> tools_from_openai(const ChatJson& tools, std::string_view where) {
  std::vector<ChatTool> result;
  for (const Field& field : Field(tools, std::string(where)).elements()) {
    check_function_type(field);
    const Field function = field.member("function");
    const Field name = function.member("name");
    if (name.string().empty()) name.wrong("a name that is not empty");
    const bool repeated = std::any_of(result.begin(), result.end(), [&](const ChatTool& tool) {
      return tool.name == name.string();
    });
    if (repeated) name.wrong("a name that no other tool has");
    result.push_back({.name = name.string(), .function = function.object()});
  }
  return result;
}

ChatJson message_to_openai(const ChatMessage& message) {
  ChatJson object = {{"role", role_name(message.role)}, {"content", message.content}};
  if (message.content.empty() && !message.tool_calls.empty()) object["content"] = nullptr;
  if (!message.reasoning_content.empty()) object["reasoning_content"] = message.reasoning_content;
  for (const ToolCall& call : message.tool_calls) {
    object["tool_calls"].push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return object;
}

}  // namespace cupel

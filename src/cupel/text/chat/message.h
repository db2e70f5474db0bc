// Messages of a conversation, independent of any protocol (spec section 6.2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace cupel {

// JSON whose objects keep the order of their keys: the prompt text depends on it.
using ChatJson = nlohmann::ordered_json;

enum class ChatRole : std::uint8_t {
  kSystem,
  kDeveloper,
  kUser,
  kAssistant,
  kTool,
  kLatestReminder,
};
// "system", "developer", "user", "assistant", "tool", "latest_reminder".
std::string_view role_name(ChatRole role);
std::optional<ChatRole> role_from_name(std::string_view name);

// A short classification that a message asks for instead of an answer.
enum class ChatTask : std::uint8_t { kAction, kQuery, kAuthority, kDomain, kTitle, kReadUrl };
// "action", "query", "authority", "domain", "title", "read_url".
std::string_view task_name(ChatTask task);
std::optional<ChatTask> task_from_name(std::string_view name);

struct ToolCall {
  std::string id;         // may be empty
  std::string name;       // of the function
  std::string arguments;  // JSON text of an object, as the client wrote it
  bool operator==(const ToolCall&) const = default;
};

// A function that the model may call.
struct ChatTool {
  std::string name;
  ChatJson function;  // the whole object: name, description, parameters, ...
  bool operator==(const ChatTool&) const = default;
};

struct ChatMessage {
  ChatRole role = ChatRole::kUser;
  std::string content;
  std::string reasoning_content;            // assistant
  std::vector<ToolCall> tool_calls;         // assistant
  std::string tool_call_id;                 // tool: the call this is the result of; may be empty
  std::vector<ChatTool> tools;              // system and developer
  std::optional<ChatJson> response_format;  // system and developer: the schema shown to the model
  std::optional<ChatTask> task;
  bool without_eos = false;  // assistant: the message goes on where the text ends
  bool operator==(const ChatMessage&) const = default;
};

// What a request states beside its messages becomes part of the first one: an empty system message
// is put in front if the first is not one. Nothing changes if there are no tools.
void attach_tools(std::vector<ChatMessage>& messages, std::vector<ChatTool> tools);
void attach_response_format(std::vector<ChatMessage>& messages, ChatJson schema);

}  // namespace cupel

#include "cupel/text/chat/message.h"

#include <array>
#include <utility>

namespace cupel {
namespace {

// In the order of the enumerations.
constexpr std::array<std::string_view, 6> kRoles = {"system",    "developer", "user",
                                                    "assistant", "tool",      "latest_reminder"};
constexpr std::array<std::string_view, 6> kTasks = {"action", "query", "authority",
                                                    "domain", "title", "read_url"};

template <typename Enum, std::size_t count>
std::optional<Enum> find_name(const std::array<std::string_view, count>& names,
                              std::string_view name) {
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

ChatMessage& first_system_message(std::vector<ChatMessage>& messages) {
  if (messages.empty() || messages.front().role != ChatRole::kSystem) {
    ChatMessage system;
    system.role = ChatRole::kSystem;
    messages.insert(messages.begin(), std::move(system));
  }
  return messages.front();
}

}  // namespace

std::string_view role_name(ChatRole role) {
  return kRoles[static_cast<std::size_t>(role)];
}

std::optional<ChatRole> role_from_name(std::string_view name) {
  return find_name<ChatRole>(kRoles, name);
}

std::string_view task_name(ChatTask task) {
  return kTasks[static_cast<std::size_t>(task)];
}

std::optional<ChatTask> task_from_name(std::string_view name) {
  return find_name<ChatTask>(kTasks, name);
}

void attach_tools(std::vector<ChatMessage>& messages, std::vector<ChatTool> tools) {
  if (tools.empty()) return;
  std::vector<ChatTool>& present = first_system_message(messages).tools;
  present.insert(present.end(), std::make_move_iterator(tools.begin()),
                 std::make_move_iterator(tools.end()));
}

void attach_response_format(std::vector<ChatMessage>& messages, ChatJson schema) {
  first_system_message(messages).response_format = std::move(schema);
}

}  // namespace cupel

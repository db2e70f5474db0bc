#include "cupel/text/chat/turns.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace cupel {
namespace {

using CallOrder = std::unordered_map<std::string_view, std::size_t>;

CallOrder order_of_calls(const ChatMessage& assistant) {
  CallOrder order;
  for (std::size_t i = 0; i < assistant.tool_calls.size(); ++i) {
    const std::string& id = assistant.tool_calls[i].id;
    if (!id.empty()) order[id] = i;
  }
  return order;
}

// Texts keep their places.
void sort_results(std::vector<const ChatMessage*>& parts, const CallOrder& order) {
  std::vector<const ChatMessage*> results;
  for (const ChatMessage* part : parts) {
    if (part->role == ChatRole::kTool) results.push_back(part);
  }
  const auto place = [&](const ChatMessage* result) {
    const auto found = order.find(result->tool_call_id);
    return found == order.end() ? std::size_t{0} : found->second;
  };
  std::stable_sort(results.begin(), results.end(),
                   [&](const auto* a, const auto* b) { return place(a) < place(b); });
  auto next = results.begin();
  for (const ChatMessage*& part : parts) {
    if (part->role == ChatRole::kTool) part = *next++;
  }
}

}  // namespace

std::vector<ChatTurn> merge_turns(std::span<const ChatMessage> messages) {
  std::vector<ChatTurn> turns;
  for (const ChatMessage& message : messages) {
    const bool result = message.role == ChatRole::kTool;
    const bool joins = !turns.empty() && turns.back().role == ChatRole::kUser &&
                       (result || (message.role == ChatRole::kUser && !turns.back().task));
    if (joins) {
      turns.back().parts.push_back(&message);
    } else if (result) {
      turns.push_back({.role = ChatRole::kUser, .task = std::nullopt, .parts = {&message}});
    } else {
      turns.push_back({.role = message.role, .task = message.task, .parts = {&message}});
    }
  }

  CallOrder order;
  for (ChatTurn& turn : turns) {
    if (turn.role == ChatRole::kAssistant && !turn.parts.front()->tool_calls.empty()) {
      order = order_of_calls(*turn.parts.front());
    } else if (turn.role == ChatRole::kUser) {
      sort_results(turn.parts, order);
    }
  }
  return turns;
}

std::optional<std::size_t> last_user_turn(const std::vector<ChatTurn>& turns) {
  for (std::size_t i = turns.size(); i-- > 0;) {
    if (turns[i].role == ChatRole::kUser || turns[i].role == ChatRole::kDeveloper) return i;
  }
  return std::nullopt;
}

void drop_earlier_developers(std::vector<ChatTurn>& turns) {
  const auto last = turns.begin() + static_cast<std::ptrdiff_t>(last_user_turn(turns).value_or(0));
  turns.erase(
      std::remove_if(turns.begin(), last,
                     [](const ChatTurn& turn) { return turn.role == ChatRole::kDeveloper; }),
      last);
}

}  // namespace cupel

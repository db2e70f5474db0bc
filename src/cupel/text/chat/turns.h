// The steps between the messages of a request and the turns of the prompt (spec section 6.2).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "cupel/text/chat/message.h"

namespace cupel {

// Points into the messages it was made of.
struct ChatTurn {
  ChatRole role;  // never kTool
  std::optional<ChatTask> task;
  // A user's turn: its texts (kUser) and tool results (kTool) in order. Else the one message.
  std::vector<const ChatMessage*> parts;
};

// Tool results join the user's turn before them or start one; user messages join the one before
// them unless it has a task. Two or more results in a turn are put in the order of the calls that
// the last assistant message with calls made, a result of an unknown call as if of the first one.
std::vector<ChatTurn> merge_turns(std::span<const ChatMessage> messages);

// The index of the last user's or developer's turn.
std::optional<std::size_t> last_user_turn(const std::vector<ChatTurn>& turns);

// Removes the developer turns before the last user's or developer's turn.
void drop_earlier_developers(std::vector<ChatTurn>& turns);

}  // namespace cupel

// Messages and tools as OpenAI's chat completions write them.
#pragma once

#include <string_view>
#include <vector>

#include "cupel/text/chat/message.h"

namespace cupel {

// Parses JSON text nested at most `max_depth` deep, keys in order, the last of equal keys winning.
// Throws InputError naming the byte offset: text that is not JSON, invalid UTF-8, nested deeper.
// The functions below are recursive in their argument: let untrusted text pass through here.
ChatJson parse_chat_json(std::string_view text, std::string_view where, int max_depth = 128);

// The array "messages". `where` is what errors call it: they read
// "messages[2].tool_calls[0].function.name: expected a string, found 5". Throws InputError: no
// array, an empty one, an unknown role or task, a wrong type, an assistant message that is nothing,
// a developer message without content.
//
// Beside OpenAI's own fields: reasoning_content (or "reasoning"), tools, response_format, task,
// wo_eos and the roles developer and latest_reminder, as in the published encoder. Other fields are
// ignored. Content given as parts: text parts are joined by an empty line; another part is an
// error, but in a tool result it becomes "[Unsupported TYPE]".
std::vector<ChatMessage> messages_from_openai(const ChatJson& messages, std::string_view where);

// The array "tools": objects {"type": "function", "function": {"name": ...}}; the type may be left
// out. Throws InputError: another type, no name, an empty or a repeated one.
std::vector<ChatTool> tools_from_openai(const ChatJson& tools, std::string_view where);

// An assistant message as OpenAI answers with it: role, content (null if empty and there are tool
// calls), reasoning_content if not empty, tool_calls if any.
ChatJson message_to_openai(const ChatMessage& message);

}  // namespace cupel

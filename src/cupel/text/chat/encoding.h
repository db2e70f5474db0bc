// Messages to prompt text (spec sections 6.2, 6.3).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cupel/checkpoint/config.h"
#include "cupel/text/chat/message.h"
#include "cupel/text/chat/prompt_prose.h"

namespace cupel {

// The releases differ in what a reasoning effort stands for.
enum class ChatRelease : std::uint8_t { kPreview, k0731 };
// 0731 if the configuration has a DSpark drafter (dspark_block_size).
ChatRelease chat_release(const ModelConfig& config);
// "preview", "0731".
std::string_view release_name(ChatRelease release);
std::optional<ChatRelease> release_from_name(std::string_view name);

enum class ThinkingMode : std::uint8_t {
  kChat,      // the answer at once
  kThinking,  // reasoning up to </think>, then the answer
};

// The preview knows none (its default), high and max; 0731 low (its default), high and max.
enum class ReasoningEffort : std::uint8_t { kNone, kLow, kHigh, kMax };
// "none", "low", "high", "max".
std::string_view effort_name(ReasoningEffort effort);
std::optional<ReasoningEffort> effort_from_name(std::string_view name);

struct PromptOptions {
  ThinkingMode mode = ThinkingMode::kChat;
  // Empty: the default of the release. Adds no text in chat mode.
  std::optional<ReasoningEffort> effort = std::nullopt;
  // Leave out the reasoning before the last user message. Never done if a message has tools.
  bool drop_reasoning = true;
  bool add_bos = true;
};

class PromptEncoder {
 public:
  PromptEncoder(ChatRelease release, PromptProse prose);

  // The whole prompt, special tokens as their text. Ends where the model is to go on, with
  // "<think>" or "</think>" after a user's turn. Throws InputError: no message, an effort that the
  // release does not have, text that is needed and not there (effort, tools), a developer message
  // without content.
  std::string encode(std::span<const ChatMessage> messages, const PromptOptions& options) const;

  ChatRelease release() const { return release_; }
  // Whether response_format adds text to a prompt.
  bool describes_response_format() const { return prose_.response_format.has_value(); }

 private:
  std::string effort_prefix(const PromptOptions& options) const;
  std::string instructions(const ChatMessage& message) const;

  ChatRelease release_;
  PromptProse prose_;
};

// What the model is to write for an assistant message, the inverse of OutputParser: in thinking
// mode the reasoning and </think>, then content, tool calls and, unless without_eos, the end of
// sentence. No "<think>": that is part of the prompt.
std::string render_assistant(const ChatMessage& message, ThinkingMode mode);

}  // namespace cupel

#include "cupel/text/chat/encoding.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cupel/base/error.h"
#include "cupel/text/chat/python_json.h"
#include "cupel/text/chat/special_tokens.h"
#include "cupel/text/chat/template_text.h"
#include "cupel/text/chat/turns.h"

namespace cupel {
namespace {

constexpr std::array<std::string_view, 4> kEfforts = {"none", "low", "high", "max"};

std::string render_call(const ToolCall& call) {
  // Arguments that are no JSON object are shown as one string.
  const auto members = json_members(call.arguments)
                           .value_or(std::vector<JsonMember>{{"arguments", true, call.arguments}});
  std::string text;
  text.append(kInvokeTag).append(call.name).append(kEndOfName);
  if (members.empty()) text += '\n';
  for (const JsonMember& member : members) {
    text.append("\n").append(kParameterTag).append(member.key);
    text.append(member.is_string ? kStringParameter : kJsonParameter);
    text.append(member.value).append(kEndParameterTag);
  }
  return text.append("\n").append(kEndInvokeTag);
}

std::string render_answer(const ChatMessage& message) {
  std::string text = message.content;
  if (!message.tool_calls.empty()) {
    text.append("\n\n").append(kToolCallsTag);
    for (const ToolCall& call : message.tool_calls) text.append("\n").append(render_call(call));
    text.append("\n").append(kEndToolCallsTag);
  }
  if (!message.without_eos) text += kEosText;
  return text;
}

std::string render_reasoning(const ChatMessage& message) {
  return message.reasoning_content + std::string(kEndThinkText);
}

std::string render_user(const ChatTurn& turn) {
  std::string text(kUserText);
  for (std::size_t i = 0; i < turn.parts.size(); ++i) {
    if (i > 0) text += "\n\n";
    const ChatMessage& part = *turn.parts[i];
    const bool result = part.role == ChatRole::kTool;
    text += result ? "<tool_result>" + part.content + "</tool_result>" : part.content;
  }
  return text;
}

std::string task_text(ChatTask task) {
  return "<｜" + std::string(task_name(task)) + "｜>";
}

// What stands between a turn and the model's answer to it.
std::string transition(const ChatTurn& turn, bool think) {
  const std::string_view start = think ? kThinkText : kEndThinkText;
  std::string text;
  if (turn.task) {
    if (*turn.task == ChatTask::kAction) text.append(kAssistantText).append(start);
    text += task_text(*turn.task);
  } else if (turn.role == ChatRole::kUser || turn.role == ChatRole::kDeveloper) {
    text.append(kAssistantText).append(start);
  }
  return text;
}

bool shows_tools(const ChatMessage& message) {
  return (message.role == ChatRole::kSystem || message.role == ChatRole::kDeveloper) &&
         !message.tools.empty();
}

}  // namespace

ChatRelease chat_release(const ModelConfig& config) {
  return config.drafter == DrafterKind::kDspark ? ChatRelease::k0731 : ChatRelease::kPreview;
}

std::string_view release_name(ChatRelease release) {
  return release == ChatRelease::k0731 ? "0731" : "preview";
}

std::optional<ChatRelease> release_from_name(std::string_view name) {
  for (const ChatRelease release : {ChatRelease::kPreview, ChatRelease::k0731}) {
    if (release_name(release) == name) return release;
  }
  return std::nullopt;
}

std::string_view effort_name(ReasoningEffort effort) {
  return kEfforts[static_cast<std::size_t>(effort)];
}

std::optional<ReasoningEffort> effort_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kEfforts.size(); ++i) {
    if (kEfforts[i] == name) return static_cast<ReasoningEffort>(i);
  }
  return std::nullopt;
}

PromptEncoder::PromptEncoder(ChatRelease release, PromptProse prose)
    : release_(release), prose_(std::move(prose)) {}

std::string PromptEncoder::effort_prefix(const PromptOptions& options) const {
  const bool preview = release_ == ChatRelease::kPreview;
  const ReasoningEffort lowest = preview ? ReasoningEffort::kNone : ReasoningEffort::kLow;
  const ReasoningEffort effort = options.effort.value_or(lowest);
  if (effort < ReasoningEffort::kHigh && effort != lowest) {
    throw InputError("reasoning effort",
                     std::string(effort_name(lowest)) + ", high or max (release " +
                         std::string(release_name(release_)) + ")",
                     effort_name(effort));
  }
  if (options.mode == ThinkingMode::kChat || effort == lowest) return "";
  if (preview && effort == ReasoningEffort::kHigh) return "";
  const auto& text =
      !preview && effort == ReasoningEffort::kMax ? prose_.effort_b : prose_.effort_a;
  if (!text) {
    throw InputError("reasoning effort " + std::string(effort_name(effort)),
                     "its text in the checkpoint's encoding/encoding_dsv4.py", "none");
  }
  return *text;
}

std::string PromptEncoder::instructions(const ChatMessage& message) const {
  std::string text;
  if (!message.tools.empty()) {
    if (!prose_.tools_template) throw InputError("tools", "a tools template", "none");
    std::string schemas;
    for (const ChatTool& tool : message.tools) {
      if (!schemas.empty()) schemas += '\n';
      schemas += python_json(tool.function);
    }
    text += "\n\n" + fill_tools_template(*prose_.tools_template, schemas);
  }
  if (prose_.response_format && message.response_format && !message.response_format->empty()) {
    text += "\n\n" + fill_template(*prose_.response_format,
                                   {{"schema", python_json(*message.response_format)}});
  }
  return text;
}

std::string PromptEncoder::encode(std::span<const ChatMessage> messages,
                                  const PromptOptions& options) const {
  if (messages.empty()) throw InputError("messages", "at least one message", "none");
  const bool thinking = options.mode == ThinkingMode::kThinking;
  const bool drop =
      options.drop_reasoning && std::none_of(messages.begin(), messages.end(), shows_tools);

  std::vector<ChatTurn> turns = merge_turns(messages);
  if (thinking && drop) drop_earlier_developers(turns);
  const auto last_user = last_user_turn(turns);

  std::string prompt(options.add_bos ? kBosText : "");
  prompt += effort_prefix(options);
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const ChatTurn& turn = turns[i];
    const ChatMessage& message = *turn.parts.front();
    switch (turn.role) {
      case ChatRole::kSystem:
        prompt += message.content + instructions(message);
        break;
      case ChatRole::kDeveloper:
        if (message.content.empty()) throw InputError("developer message", "content", "none");
        prompt += std::string(kUserText) + message.content + instructions(message);
        break;
      case ChatRole::kLatestReminder:
        prompt += std::string(kLatestReminderText) + message.content;
        break;
      case ChatRole::kUser:
      case ChatRole::kTool:
        prompt += render_user(turn);
        break;
      case ChatRole::kAssistant: {
        const bool answers_task = i > 0 && turns[i - 1].task;
        if (thinking && !answers_task && (!drop || !last_user || i > *last_user)) {
          prompt += render_reasoning(message);
        }
        prompt += render_answer(message);
        break;
      }
    }
    const bool answered = i + 1 == turns.size() || turns[i + 1].role == ChatRole::kAssistant ||
                          turns[i + 1].role == ChatRole::kLatestReminder;
    // A task's answer is asked for in thinking mode wherever it stands.
    const bool current = !drop || !last_user || i >= *last_user || turn.task;
    if (answered) prompt += transition(turn, thinking && current);
  }
  return prompt;
}

std::string render_assistant(const ChatMessage& message, ThinkingMode mode) {
  return (mode == ThinkingMode::kThinking ? render_reasoning(message) : "") +
         render_answer(message);
}

}  // namespace cupel

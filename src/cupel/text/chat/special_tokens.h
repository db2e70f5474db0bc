// Special tokens and tags of the prompt format, as text (spec sections 6.1, 6.2). The bars are
// U+FF5C, the underlines U+2581.
#pragma once

#include <cstdint>
#include <string_view>

#include "cupel/text/tokenizer.h"

namespace cupel {

inline constexpr std::string_view kBosText = "<｜begin▁of▁sentence｜>";
inline constexpr std::string_view kEosText = "<｜end▁of▁sentence｜>";
inline constexpr std::string_view kUserText = "<｜User｜>";
inline constexpr std::string_view kAssistantText = "<｜Assistant｜>";
inline constexpr std::string_view kLatestReminderText = "<｜latest_reminder｜>";
inline constexpr std::string_view kThinkText = "<think>";
inline constexpr std::string_view kEndThinkText = "</think>";
inline constexpr std::string_view kDsmlText = "｜DSML｜";

// A block of tool calls.
inline constexpr std::string_view kToolCallsTag = "<｜DSML｜tool_calls>";
inline constexpr std::string_view kEndToolCallsTag = "</｜DSML｜tool_calls>";
inline constexpr std::string_view kInvokeTag = "<｜DSML｜invoke name=\"";  // name, kEndOfName
inline constexpr std::string_view kEndOfName = "\">";
inline constexpr std::string_view kEndInvokeTag = "</｜DSML｜invoke>";
// name, then one of the two ends
inline constexpr std::string_view kParameterTag = "<｜DSML｜parameter name=\"";
inline constexpr std::string_view kStringParameter = "\" string=\"true\">";
inline constexpr std::string_view kJsonParameter = "\" string=\"false\">";
inline constexpr std::string_view kEndParameterTag = "</｜DSML｜parameter>";

// The token of kEndThinkText. Throws InputError if the tokenizer needs several.
std::int32_t end_think_token(const Tokenizer& tokenizer);

}  // namespace cupel

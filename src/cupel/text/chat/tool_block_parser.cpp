#include "cupel/text/chat/tool_block_parser.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "cupel/text/chat/python_json.h"
#include "cupel/text/chat/special_tokens.h"

namespace cupel {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

constexpr std::array<std::string_view, 1> kFirstTags = {kInvokeTag};
constexpr std::array<std::string_view, 2> kCallTags = {kInvokeTag, kEndToolCallsTag};
constexpr std::array<std::string_view, 2> kParameterTags = {kParameterTag, kEndInvokeTag};

}  // namespace

void ToolBlockParser::begin(std::string_view opening) {
  enter(State::kBeforeCalls);
  raw_ = opening;
}

void ToolBlockParser::enter(State state) {
  state_ = state;
  searched_ = 0;
}

std::string_view ToolBlockParser::take(TextBuffer& input, std::size_t length) {
  const std::string_view taken = input.take(length);
  raw_ += taken;
  return taken;
}

ToolBlockParser::Status ToolBlockParser::parse(TextBuffer& input, OutputEvents& events) {
  while (true) {
    switch (step(input, events)) {
      case Step::kDone:
        break;
      case Step::kNeedsMore:
        return Status::kOpen;
      case Step::kClosed:
        return Status::kClosed;
      case Step::kBroken:
        abandon(events);
        return Status::kBroken;
    }
  }
}

void ToolBlockParser::end(TextBuffer& input, OutputEvents& events) {
  const std::string_view rest = input.rest();
  const bool only_space = rest.find_first_not_of(kSpace) == std::string_view::npos;
  // Behind a complete call, white space is no text that the model meant.
  if (state_ == State::kBetweenCalls && only_space) {
    input.take(rest.size());
    return;
  }
  take(input, rest.size());
  abandon(events);
}

void ToolBlockParser::abandon(OutputEvents& events) {
  if (in_call()) {
    events.abandon_call(raw_);
  } else {
    events.content(raw_);
  }
  raw_.clear();
  keys_.clear();
}

ToolBlockParser::Step ToolBlockParser::step(TextBuffer& input, OutputEvents& events) {
  switch (state_) {
    case State::kBeforeCalls:
    case State::kBetweenCalls:
    case State::kBetweenParameters:
      return between_tags(input, events);
    case State::kName:
      return name(input, events);
    case State::kParameterName:
      return parameter_name(input, events);
    case State::kStringValue:
      return string_value(input, events);
    case State::kJsonValue:
      return json_value(input, events);
  }
  return Step::kBroken;
}

// White space, then one of the tags that may come here.
ToolBlockParser::Step ToolBlockParser::between_tags(TextBuffer& input, OutputEvents& events) {
  const std::string_view rest = input.rest();
  searched_ = std::min(rest.find_first_not_of(kSpace, searched_), rest.size());
  const std::string_view text = rest.substr(searched_);
  const std::span<const std::string_view> tags =
      state_ == State::kBeforeCalls    ? std::span<const std::string_view>(kFirstTags)
      : state_ == State::kBetweenCalls ? std::span<const std::string_view>(kCallTags)
                                       : std::span<const std::string_view>(kParameterTags);
  for (const std::string_view tag : tags) {
    if (text.size() < tag.size() && tag.starts_with(text)) return Step::kNeedsMore;
    if (!text.starts_with(tag)) continue;
    take(input, searched_ + tag.size());
    if (tag == kInvokeTag) {
      enter(State::kName);
    } else if (tag == kParameterTag) {
      enter(State::kParameterName);
    } else if (tag == kEndInvokeTag) {
      events.arguments(keys_.empty() ? "{}" : "}");
      events.end_call();
      keys_.clear();
      raw_.clear();
      enter(State::kBetweenCalls);
    } else {
      raw_.clear();
      return Step::kClosed;
    }
    return Step::kDone;
  }
  return Step::kBroken;
}

// A name ends before the next tag: a header without its end must not swallow what follows.
ToolBlockParser::Step ToolBlockParser::name(TextBuffer& input, OutputEvents& events) {
  const std::string_view rest = input.rest();
  const std::size_t tag = rest.find(kDsmlText, searched_);
  const std::size_t end = rest.substr(0, tag).find(kEndOfName, searched_);
  if (end == std::string_view::npos) {
    if (tag != std::string_view::npos) return Step::kBroken;
    searched_ = rest.size() - std::min(rest.size(), kDsmlText.size() - 1);
    return Step::kNeedsMore;
  }
  if (end == 0) return Step::kBroken;
  std::string name(rest.substr(0, end));
  take(input, end + kEndOfName.size());
  events.begin_call(std::move(name));
  enter(State::kBetweenParameters);
  return Step::kDone;
}

ToolBlockParser::Step ToolBlockParser::parameter_name(TextBuffer& input, OutputEvents& events) {
  const std::string_view rest = input.rest();
  const std::size_t tag = rest.find(kDsmlText, searched_);
  const std::string_view header = rest.substr(0, tag);
  const std::size_t as_string = header.find(kStringParameter, searched_);
  const std::size_t as_json = header.find(kJsonParameter, searched_);
  const std::size_t end = std::min(as_string, as_json);
  if (end == std::string_view::npos) {
    if (tag != std::string_view::npos) return Step::kBroken;
    searched_ = rest.size() - std::min(rest.size(), kJsonParameter.size() - 1);
    return Step::kNeedsMore;
  }
  key_ = rest.substr(0, end);
  if (!keys_.insert(key_).second) return Step::kBroken;
  const bool is_string = as_string < as_json;
  take(input, end + (is_string ? kStringParameter : kJsonParameter).size());
  if (is_string) {
    write_key(events);
    events.arguments("\"");
  }
  enter(is_string ? State::kStringValue : State::kJsonValue);
  return Step::kDone;
}

void ToolBlockParser::write_key(OutputEvents& events) {
  events.arguments((keys_.size() == 1 ? "{" : ", ") + python_json_string(key_) + ": ");
}

// Given out as it comes: escaping works character by character.
ToolBlockParser::Step ToolBlockParser::string_value(TextBuffer& input, OutputEvents& events) {
  const std::string_view rest = input.rest();
  const std::size_t end = rest.find(kEndParameterTag);
  const bool ended = end != std::string_view::npos;
  const std::size_t length = ended ? end : rest.size() - unfinished_tag(rest, kEndParameterTag);
  const std::string quoted = python_json_string(take(input, length));
  events.arguments(std::string_view(quoted).substr(1, quoted.size() - 2));
  if (!ended) return Step::kNeedsMore;
  events.arguments("\"");
  take(input, kEndParameterTag.size());
  enter(State::kBetweenParameters);
  return Step::kDone;
}

ToolBlockParser::Step ToolBlockParser::json_value(TextBuffer& input, OutputEvents& events) {
  const std::string_view rest = input.rest();
  const std::size_t end = rest.find(kEndParameterTag, searched_);
  if (end == std::string_view::npos) {
    searched_ = rest.size() - std::min(rest.size(), kEndParameterTag.size() - 1);
    return Step::kNeedsMore;
  }
  const std::string_view value = take(input, end);
  write_key(events);
  if (is_json(value)) {
    events.arguments(value);
  } else {
    events.arguments(python_json_string(value));
  }
  take(input, kEndParameterTag.size());
  enter(State::kBetweenParameters);
  return Step::kDone;
}

}  // namespace cupel

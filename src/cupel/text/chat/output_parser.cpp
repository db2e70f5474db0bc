#include "cupel/text/chat/output_parser.h"

#include <algorithm>
#include <utility>

#include "cupel/text/chat/output_events.h"
#include "cupel/text/chat/special_tokens.h"
#include "cupel/text/chat/text_buffer.h"
#include "cupel/text/chat/tool_block_parser.h"
#include "cupel/text/utf8.h"

namespace cupel {
namespace {

constexpr std::string_view kEmptyLine = "\n\n";

}  // namespace

struct OutputParser::Impl {
  enum class State : std::uint8_t { kReasoning, kContent, kToolCalls, kEnded };

  explicit Impl(Options given)
      : options(given),
        state(given.mode == ThinkingMode::kThinking ? State::kReasoning : State::kContent) {}

  // Whole characters, valid, up to the end of the sentence.
  void add_characters(std::string_view text) {
    if (state == State::kEnded) return;
    before_end.append(text);
    const std::string_view rest = before_end.rest();
    const std::size_t end = rest.find(kEosText);
    const bool ended = end != std::string_view::npos;
    input.append(before_end.take(ended ? end : rest.size() - unfinished_tag(rest, kEosText)));
    before_end.compact();
    parse();
    if (ended) flush();
  }

  void parse() {
    while (step()) {
    }
    input.compact();
  }

  // False: more text is needed.
  bool step() {
    switch (state) {
      case State::kReasoning:
        return reasoning();
      case State::kContent:
        return content();
      case State::kToolCalls:
        if (block.parse(input, events) == ToolBlockParser::Status::kOpen) return false;
        state = State::kContent;
        return true;
      case State::kEnded:
        return false;
    }
    return false;
  }

  bool reasoning() {
    const std::string_view rest = input.rest();
    const std::size_t end = rest.find(kEndThinkText);
    if (end == std::string_view::npos) {
      events.reasoning(input.take(rest.size() - unfinished_tag(rest, kEndThinkText)));
      return false;
    }
    events.reasoning(input.take(end));
    input.take(kEndThinkText.size());
    state = State::kContent;
    return true;
  }

  bool content() {
    const std::string_view rest = input.rest();
    if (!options.tool_calls) {
      events.content(input.take(rest.size()));
      return false;
    }
    const std::size_t tag = rest.find(kToolCallsTag);
    if (tag == std::string_view::npos) {
      static const std::string with_empty_line =
          std::string(kEmptyLine) + std::string(kToolCallsTag);
      const std::size_t held =
          std::max(unfinished_tag(rest, kToolCallsTag), unfinished_tag(rest, with_empty_line));
      events.content(input.take(rest.size() - held));
      return false;
    }
    const std::string_view before = rest.substr(0, tag);
    const std::size_t length =
        before.ends_with(kEmptyLine) ? before.size() - kEmptyLine.size() : before.size();
    events.content(input.take(length));
    block.begin(input.take(tag - length + kToolCallsTag.size()));
    state = State::kToolCalls;
    return true;
  }

  // No more text will come.
  void flush() {
    if (state == State::kToolCalls) block.end(input, events);
    const std::string_view rest = input.take(input.rest().size());
    if (state == State::kReasoning) events.reasoning(rest);
    if (state == State::kContent) events.content(rest);
    state = State::kEnded;
  }

  Options options;
  State state;
  TextBuffer bytes;       // an unfinished character
  TextBuffer before_end;  // perhaps the start of the end of sentence
  TextBuffer input;
  ToolBlockParser block;
  OutputEvents events;
};

OutputParser::OutputParser(Options options) : impl_(std::make_unique<Impl>(options)) {}
OutputParser::OutputParser(OutputParser&&) noexcept = default;
OutputParser& OutputParser::operator=(OutputParser&&) noexcept = default;
OutputParser::~OutputParser() = default;

std::vector<OutputEvent> OutputParser::feed(std::string_view bytes) {
  impl_->bytes.append(bytes);
  const std::string_view whole = complete_utf8_prefix(impl_->bytes.rest());
  impl_->add_characters(to_valid_utf8(impl_->bytes.take(whole.size())));
  impl_->bytes.compact();
  return impl_->events.take();
}

std::vector<OutputEvent> OutputParser::finish() {
  impl_->add_characters(to_valid_utf8(impl_->bytes.take(impl_->bytes.rest().size())));
  if (impl_->state != Impl::State::kEnded) {
    const std::string_view held = impl_->before_end.rest();
    impl_->input.append(impl_->before_end.take(held.size()));
    impl_->parse();
    impl_->flush();
  }
  return impl_->events.take();
}

const ChatMessage& OutputParser::message() const {
  return impl_->events.message();
}

ChatMessage parse_output(std::string_view bytes, OutputParser::Options options) {
  OutputParser parser(options);
  parser.feed(bytes);
  parser.finish();
  return parser.message();
}

}  // namespace cupel

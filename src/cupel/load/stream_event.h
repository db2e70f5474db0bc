// What one event of a streamed reply tells a stop-watch.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cupel/eval/protocol.h"

namespace cupel {

struct StreamEvent {
  // Which prompt of the request; none in an event that is about the whole reply.
  std::optional<std::size_t> sequence;
  // /generate: tokens of the sequence so far, cumulative. The OpenAI interfaces do not tell.
  std::optional<int> tokens;
  bool shows_text = false;  // a piece of text, or of the model's thoughts
  bool finished = false;    // the sequence ends with this event
  // /generate: of the sequence; else of the whole reply.
  std::optional<TokenUsage> usage;
};

// `data` is that of one server-sent event, other than "[DONE]". Throws InputError and
// TransientError as Protocol::read() does.
std::vector<StreamEvent> read_stream_events(Api api, const std::string& data,
                                            const PartSource& source);

}  // namespace cupel

// Times of the tokens of a streamed reply, by SGLang's rules (bench_serving).
#pragma once

#include <optional>
#include <vector>

#include "cupel/load/stream_event.h"

namespace cupel {

struct SequenceTimes {
  std::optional<double> first_token;  // seconds, of the first event with a token
  double last_token = 0;
  int tokens = 0;  // /generate: as told; else events with text
  int events = 0;  // that brought tokens
  // Inter-token latencies, seconds. /generate: the time between two events that bring tokens,
  // divided by the tokens that the later one brings, once for each of them; further tokens in the
  // first event have none. The OpenAI interfaces: the time between two events with text, whatever
  // number of tokens they hold.
  std::vector<double> gaps;
  bool finished = false;
  std::optional<TokenUsage> usage;  // /generate alone
};

class StreamTimes {
 public:
  // Of `sequences` prompts.
  explicit StreamTimes(std::size_t sequences) : sequences_(sequences) {}

  // `seconds` is when the event came. Throws InputError, with `where`, for a sequence that was not
  // asked for.
  void add(const StreamEvent& event, double seconds, const std::string& where);

  const std::vector<SequenceTimes>& sequences() const { return sequences_; }
  // Every sequence has ended.
  bool finished() const;
  // Of all sequences; nullopt where the server did not tell.
  std::optional<TokenUsage> usage() const;
  // When the last sequence had its first token; nullopt while one has none.
  std::optional<double> last_first_token() const;
  int events() const;

 private:
  std::vector<SequenceTimes> sequences_;
  std::optional<TokenUsage> usage_;  // of the whole reply
};

}  // namespace cupel

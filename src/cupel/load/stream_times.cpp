#include "cupel/load/stream_times.h"

#include <algorithm>

#include <fmt/format.h>

#include "cupel/base/error.h"

namespace cupel {

void StreamTimes::add(const StreamEvent& event, double seconds, const std::string& where) {
  if (!event.sequence) {
    if (event.usage) usage_ = event.usage;
    return;
  }
  if (*event.sequence >= sequences_.size()) {
    throw InputError(where, fmt::format("indexes below {}", sequences_.size()),
                     std::to_string(*event.sequence));
  }
  SequenceTimes& s = sequences_[*event.sequence];
  if (event.usage) s.usage = event.usage;
  s.finished = s.finished || event.finished;
  const int brought = event.tokens ? *event.tokens - s.tokens : static_cast<int>(event.shows_text);
  if (brought <= 0) return;
  if (s.first_token) {
    const int divisor = event.tokens ? brought : 1;
    s.gaps.insert(s.gaps.end(), static_cast<std::size_t>(divisor),
                  (seconds - s.last_token) / divisor);
  } else {
    s.first_token = seconds;
  }
  s.last_token = seconds;
  s.tokens += brought;
  ++s.events;
}

bool StreamTimes::finished() const {
  return std::all_of(sequences_.begin(), sequences_.end(),
                     [](const SequenceTimes& s) { return s.finished; });
}

std::optional<TokenUsage> StreamTimes::usage() const {
  if (usage_) return usage_;
  TokenUsage sum;
  for (const SequenceTimes& s : sequences_) {
    if (!s.usage) return std::nullopt;
    sum.prompt += s.usage->prompt;
    sum.cached_prompt += s.usage->cached_prompt;
    sum.completion += s.usage->completion;
  }
  return sum;
}

std::optional<double> StreamTimes::last_first_token() const {
  std::optional<double> last;
  for (const SequenceTimes& s : sequences_) {
    if (!s.first_token) return std::nullopt;
    last = std::max(last.value_or(*s.first_token), *s.first_token);
  }
  return last;
}

int StreamTimes::events() const {
  int events = 0;
  for (const SequenceTimes& s : sequences_) events += s.events;
  return events;
}

}  // namespace cupel

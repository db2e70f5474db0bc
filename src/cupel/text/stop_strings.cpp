#include "cupel/text/stop_strings.h"

#include <fmt/format.h>

#include "cupel/base/error.h"

namespace cupel {

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  std::uint16_t class_count = 1;
  for (std::size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty()) throw InputError(fmt::format("stop[{}]", i), "a string", "\"\"");
    for (const char c : stops[i]) {
      std::uint16_t& byte_class = classes_[static_cast<std::uint8_t>(c)];
      if (byte_class == 0) byte_class = class_count++;
    }
  }
  // State 0 is the root; as a transition it stands for "none" until the links are filled in.
  states_.push_back({std::vector<std::uint32_t>(class_count), 0, 0, 0});
  for (std::size_t i = 0; i < stops.size(); ++i) {
    std::uint32_t state = 0;
    for (const char c : stops[i]) {
      const std::uint16_t byte_class = classes_[static_cast<std::uint8_t>(c)];
      if (states_[state].next[byte_class] == 0) {
        const auto fresh = static_cast<std::uint32_t>(states_.size());
        states_.push_back(
            {std::vector<std::uint32_t>(class_count), states_[state].depth + 1, 0, 0});
        states_[state].next[byte_class] = fresh;
      }
      state = states_[state].next[byte_class];
    }
    if (states_[state].longest == 0) {
      states_[state].longest = stops[i].size();
      states_[state].stop = i;
    }
  }

  // Breadth first, so that a state's shorter ends are complete before it: missing transitions are
  // those of its longest proper end that is a state too, and so are the stop strings it ends with.
  std::vector<std::uint32_t> queue{0};
  std::vector<std::uint32_t> shorter(states_.size(), 0);
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const std::uint32_t state = queue[head];
    const State& fallback = states_[shorter[state]];
    if (states_[state].longest == 0) {
      states_[state].longest = fallback.longest;
      states_[state].stop = fallback.stop;
    }
    for (std::uint16_t c = 0; c < class_count; ++c) {
      const std::uint32_t next = states_[state].next[c];
      const std::uint32_t other = state == 0 ? 0 : fallback.next[c];
      if (next == 0) {
        states_[state].next[c] = other;
      } else {
        shorter[next] = other;
        queue.push_back(next);
      }
    }
  }
}

std::optional<StopMatcher::Match> StopMatcher::feed(std::string_view bytes) {
  if (match_) return match_;
  for (const char c : bytes) {
    state_ = states_[state_].next[classes_[static_cast<std::uint8_t>(c)]];
    ++length_;
    const State& state = states_[state_];
    if (state.longest == 0) continue;
    const std::size_t start = length_ - state.longest;
    if (!match_ || start < match_->text_length) match_ = Match{start, state.stop};
  }
  return match_;
}

std::size_t StopMatcher::safe_length() const {
  return match_ ? match_->text_length : length_ - states_[state_].depth;
}

}  // namespace cupel

// Stop strings over a growing text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cupel {

// Watches the bytes of the generated tokens. A stop string may begin and end inside a token. Works
// on bytes, in time linear in the text (Aho-Corasick).
class StopMatcher {
 public:
  struct Match {
    std::size_t text_length;  // bytes of the whole text before the stop string
    std::size_t stop;         // its index in the list
    bool operator==(const Match&) const = default;
  };

  // No stops: never matches. Throws InputError for an empty stop string.
  explicit StopMatcher(std::vector<std::string> stops);

  // Appends to the text. Returns the match once a stop string is complete, and on every later call;
  // bytes after that are ignored. Of several strings completed in one call the one that starts
  // first wins; of those that start at the same byte the shortest; of equal ones the first listed.
  //
  // A call does not wait for a longer string that started earlier: with stops "abcd" and "bc",
  // "abc" ends at "bc", "abcd" in one call at "abcd". So feed one token a call, whatever the step
  // that produced it, and the result depends on the tokens alone.
  std::optional<Match> feed(std::string_view bytes);

  // Bytes of the whole text that are no part of a stop string and can be no part of one, whatever
  // follows. Never decreases. After a match: its text_length.
  std::size_t safe_length() const;

  // For the end of generation: all bytes fed, or those before the match.
  std::size_t text_length() const { return match_ ? match_->text_length : length_; }

 private:
  // A state stands for the longest end of the text that some stop string starts with.
  struct State {
    std::vector<std::uint32_t> next;  // a state for each byte class
    std::size_t depth = 0;            // its length in bytes
    std::size_t longest = 0;          // the longest stop string the text now ends with; 0: none
    std::size_t stop = 0;             // its index
  };

  // Bytes that occur in no stop string share class 0: a state then has few transitions.
  std::uint16_t classes_[256] = {};
  std::vector<State> states_;
  std::uint32_t state_ = 0;
  std::size_t length_ = 0;
  std::optional<Match> match_;
};

}  // namespace cupel

// Text that arrives in pieces and is consumed from the front.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace cupel {

// The length of the longest end of `text` that is a beginning of `tag`, but not all of it: what
// cannot be judged before more text has come.
inline std::size_t unfinished_tag(std::string_view text, std::string_view tag) {
  for (std::size_t length = std::min(text.size(), tag.size() - 1); length > 0; --length) {
    if (text.ends_with(tag.substr(0, length))) return length;
  }
  return 0;
}

class TextBuffer {
 public:
  void append(std::string_view text) { text_ += text; }
  std::string_view rest() const { return std::string_view(text_).substr(position_); }
  // Valid until the next append or compact.
  std::string_view take(std::size_t length) {
    const std::string_view taken = rest().substr(0, length);
    position_ += taken.size();
    return taken;
  }
  // Forgets what has been taken; once a piece, so that taking costs nothing.
  void compact() {
    text_.erase(0, position_);
    position_ = 0;
  }

 private:
  std::string text_;
  std::size_t position_ = 0;
};

}  // namespace cupel

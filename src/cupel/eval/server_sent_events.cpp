#include "cupel/eval/server_sent_events.h"

namespace cupel {

void ServerSentEvents::feed(std::string_view bytes) {
  for (const char c : bytes) {
    const bool rest_of_line_end = after_cr_ && c == '\n';
    after_cr_ = c == '\r';
    if (rest_of_line_end) continue;
    if (c == '\n' || c == '\r') {
      end_line();
    } else {
      line_ += c;
    }
  }
}

void ServerSentEvents::end_line() {
  const std::string line = std::move(line_);
  line_.clear();
  if (line.empty()) {
    if (has_data_) event_(data_);
    data_.clear();
    has_data_ = false;
    return;
  }
  std::string_view text = line;
  if (text != "data" && !text.starts_with("data:")) return;
  text.remove_prefix(std::min<std::size_t>(5, text.size()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  if (has_data_) data_ += '\n';
  data_ += text;
  has_data_ = true;
}

}  // namespace cupel

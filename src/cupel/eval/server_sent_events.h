// Server-sent events, the form of a streamed reply.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace cupel {

// Splits a stream into events. Only the data of an event is used: comments and other fields are
// skipped, several data lines are joined by newlines, lines end in LF, CR LF or CR.
class ServerSentEvents {
 public:
  explicit ServerSentEvents(std::function<void(const std::string& data)> event)
      : event_(std::move(event)) {}

  // The next bytes, cut anywhere. An event that the stream ends in is never reported.
  void feed(std::string_view bytes);

 private:
  void end_line();

  std::function<void(const std::string&)> event_;
  std::string line_;
  std::string data_;
  bool has_data_ = false;
  bool after_cr_ = false;
};

}  // namespace cupel

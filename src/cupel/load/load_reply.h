// One request of a benchmark, sent and timed. Never tried again: a second try would hide what the
// first one met.
#pragma once

#include <chrono>
#include <string>

#include "cupel/eval/http_connection.h"
#include "cupel/load/stream_times.h"

namespace cupel {

using LoadClock = std::chrono::steady_clock;

inline double seconds_since(LoadClock::time_point start) {
  return std::chrono::duration<double>(LoadClock::now() - start).count();
}

// Why a request failed, in few words that many of them share: "no connection", "connection cut",
// "timeout", "status 503", "error reported", "malformed reply", "incomplete reply"; also those that
// runs give, below.
inline constexpr const char* kNoConnectionReason = "no connection";
inline constexpr const char* kInterruptedReason = "interrupted";
inline constexpr const char* kNotSentReason = "not sent";

const char* failure_reason(FailureKind kind);

struct LoadReply {
  StreamTimes times;   // seconds since `start` of the call
  double end = 0;      // when the last event came: the end of the stream
  std::string reason;  // empty: a whole reply
  std::string error;   // the whole story, without the key
  int status = 0;      // HTTP; 0 where none came
};

// Posts `body` and reads the stream of `sequences` answers. A reply counts as whole if all have
// ended, each with a token at least, and the server told their number. Throws nothing for what a
// server can do wrong.
LoadReply stream_reply(HttpConnection& connection, const HttpSettings& settings, Api api,
                       const std::string& body, std::size_t sequences, LoadClock::time_point start);

}  // namespace cupel

#include "cupel/load/load_reply.h"

#include <utility>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/eval/server_sent_events.h"
#include "cupel/load/load_request.h"

namespace cupel {

const char* failure_reason(FailureKind kind) {
  switch (kind) {
    case FailureKind::kNoConnection:
      return kNoConnectionReason;
    case FailureKind::kCut:
      return "connection cut";
    case FailureKind::kTimeout:
      return "timeout";
    case FailureKind::kServer:
      break;
  }
  return "error reported";
}

namespace {

constexpr std::string_view kEndOfStream = "[DONE]";

void check_whole(LoadReply& reply, const std::string& where) {
  const auto incomplete = [&](const std::string& what) {
    reply.reason = "incomplete reply";
    reply.error = fmt::format("{}: {}", where, what);
  };
  if (!reply.times.finished()) return incomplete("the stream ended before its answers did");
  if (!reply.times.last_first_token()) return incomplete("an answer without a token");
  if (!reply.times.usage()) return incomplete("no token counts (usage)");
}

}  // namespace

LoadReply stream_reply(HttpConnection& connection, const HttpSettings& settings, Api api,
                       const std::string& body, std::size_t sequences,
                       LoadClock::time_point start) {
  const std::string path = load_path(api);
  const std::string where = settings.endpoint.text(path);
  const PartSource source{.url = where, .api_key = settings.api_key};
  LoadReply reply{.times = StreamTimes(sequences), .end = 0, .reason = {}, .error = {}};
  double now = 0;
  bool ended = false;
  ServerSentEvents events([&](const std::string& data) {
    if (ended) return;
    reply.end = now;
    if (data == kEndOfStream) {
      ended = true;
      return;
    }
    for (const StreamEvent& event : read_stream_events(api, data, source)) {
      reply.times.add(event, now, where);
    }
  });
  try {
    const HttpReply http = connection.post(path, body, [&](std::string_view piece) {
      // Before the events are read: that takes time of its own.
      now = seconds_since(start);
      events.feed(piece);
    });
    reply.status = http.status;
    if (http.status != 200) {
      reply.reason = fmt::format("status {}", http.status);
      reply.error = fmt::format("{}: {}", where, describe_reply(http, settings.api_key));
    } else {
      check_whole(reply, where);
    }
  } catch (const TransientError& error) {
    reply.reason = failure_reason(error.kind());
    reply.error = error.what();
  } catch (const InputError& error) {
    reply.reason = "malformed reply";
    reply.error = error.what();
  }
  if (!reply.reason.empty()) reply.end = seconds_since(start);
  return reply;
}

}  // namespace cupel

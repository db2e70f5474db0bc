#include "cupel/server/reply.h"

#include <atomic>
#include <chrono>
#include <random>

#include <fmt/format.h>

#include "cupel/server/connection.h"
#include "cupel/server/http_error.h"
#include "cupel/server/token_text.h"

namespace cupel {
namespace {

// Bytes of events after which they go out.
constexpr std::size_t kPiece = std::size_t{64} << 10;

// A job that its client's leaving cancels.
class WatchedJob {
 public:
  WatchedJob(const ServerContext& context, Exchange& exchange,
             std::vector<GenerationRequest> requests, bool tokens)
      : record_(exchange.record()),
        prompt_tokens_(count_prompts(requests)),
        job_(context.thread, context.metrics, std::move(requests), tokens),
        watch_(context.watcher.watch(exchange.socket(), [this] {
          gone_ = true;
          job_.cancel();
        })) {
    record_.prompt_tokens = prompt_tokens_;
  }

  GenerationJob& job() { return job_; }
  // Throws HttpError unless the sequence ended by itself.
  void take(const Generation& generation) {
    record_.output_tokens += generation.output_ids.size();
    if (generation.finish == FinishReason::kCancelled && gone_) {
      record_.gone = true;
      throw HttpError(499, "the client left");
    }
    require_answer(generation);
  }

 private:
  static std::size_t count_prompts(const std::vector<GenerationRequest>& requests) {
    std::size_t count = 0;
    for (const GenerationRequest& request : requests) count += request.prompt_ids.size();
    return count;
  }

  AccessRecord& record_;
  std::size_t prompt_tokens_;
  GenerationJob job_;
  std::atomic<bool> gone_ = false;
  HangupWatcher::Watch watch_;  // ends first
};

class Stream {
 public:
  Stream(const ServerContext& context, Exchange& exchange, std::vector<GenerationRequest> requests,
         std::unique_ptr<StreamWriter> writer)
      : job_(context, exchange, std::move(requests), true), writer_(std::move(writer)) {}

  // False at the end.
  bool next(const Exchange::Write& write) {
    std::string out;
    bool more = true;
    try {
      const auto first = job_.job().next();
      more = first.has_value();
      if (first.has_value()) {
        put(*first, out);
      } else {
        writer_->end(out);
      }
      // What came meanwhile goes out in the same piece.
      while (more && out.size() < kPiece) {
        const auto event = job_.job().next_if_there();
        if (!event.has_value()) break;
        put(*event, out);
      }
      writer_->flush(out);
    } catch (...) {
      out += sse(error_body(as_http_error(std::current_exception())));
      more = false;
    }
    return (out.empty() || write(out)) && more;
  }

 private:
  void put(const JobEvent& event, std::string& out) {
    if (event.done) job_.take(*event.done);
    writer_->write(event, out);
  }

  WatchedJob job_;
  std::unique_ptr<StreamWriter> writer_;
};

}  // namespace

Results generate_all(const ServerContext& context, Exchange& exchange,
                     std::vector<GenerationRequest> requests) {
  WatchedJob job(context, exchange, std::move(requests), false);
  Results results(job.job().open());
  while (true) {
    const auto event = job.job().next();
    if (!event.has_value()) return results;
    if (!event->done) continue;
    job.take(*event->done);
    results[event->index] = event->done;
  }
}

void stream_all(const ServerContext& context, Exchange& exchange,
                std::vector<GenerationRequest> requests, std::unique_ptr<StreamWriter> writer) {
  exchange.stream([stream = std::make_shared<Stream>(context, exchange, std::move(requests),
                                                     std::move(writer))](
                      const Exchange::Write& write) { return stream->next(write); });
}

std::string new_reply_id(std::string_view prefix) {
  static const std::uint64_t start = std::random_device()();
  static std::atomic<std::uint64_t> count = 0;
  return fmt::format("{}-{:08x}{:08x}", prefix, start, ++count);
}

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace cupel

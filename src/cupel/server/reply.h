// From a request's sequences to its reply, whole or as a stream.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cupel/server/context.h"
#include "cupel/server/generation_job.h"
#include "cupel/server/http_server.h"

namespace cupel {

using Results = std::vector<std::shared_ptr<const Generation>>;

// Generates all sequences; a client that leaves cancels them. Throws HttpError.
Results generate_all(const ServerContext& context, Exchange& exchange,
                     std::vector<GenerationRequest> requests);

// The form of a stream.
class StreamWriter {
 public:
  virtual ~StreamWriter() = default;
  // Appends the events that follow from `event` to `out`.
  virtual void write(const JobEvent& event, std::string& out) = 0;
  // Appends what write() held back: nothing more is there at present.
  virtual void flush(std::string& out) { static_cast<void>(out); }
  // What comes after the end of the last sequence.
  virtual void end(std::string& out) = 0;
};

// Replies with a stream. A sequence that fails ends it with an event that holds the error.
void stream_all(const ServerContext& context, Exchange& exchange,
                std::vector<GenerationRequest> requests, std::unique_ptr<StreamWriter> writer);

// "cmpl-3f...": unique.
std::string new_reply_id(std::string_view prefix);
std::int64_t unix_seconds();

}  // namespace cupel

// What the interfaces of servers ask and reply: JSON out, JSON in, no connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cupel/eval/endpoint.h"
#include "cupel/eval/target.h"

namespace cupel {

struct AskOptions {
  std::string served_model = {};  // the OpenAI interfaces name it in every request
  bool stream = false;
  bool logprobs = false;  // ask for the two best of each step, for the margin
};

struct TokenUsage {
  int prompt = 0;
  int cached_prompt = 0;
  int completion = 0;
};

// The smallest difference of the two best log probabilities, and its step.
class SmallestMargin {
 public:
  // The log probabilities that the server shows for the next step, in any order; with fewer than
  // two the step counts and tells nothing.
  void add_step(const std::vector<double>& logprobs);
  std::optional<double> value() const { return value_; }
  // Of each step; NaN where it tells nothing.
  const std::vector<float>& all() const { return all_; }
  int step() const { return step_; }

 private:
  int steps_ = 0;
  std::vector<float> all_;
  std::optional<double> value_;
  int step_ = -1;
};

// An answer as it is read. A whole reply is read as one part, a streamed one as many.
struct Answer {
  std::string text;
  std::vector<std::int32_t> output_ids;
  std::optional<StopReason> stop_reason;  // set by the part that ends the answer
  std::optional<TokenUsage> usage;
  SmallestMargin margin;
};

// Of a part, for errors.
struct PartSource {
  std::string url;
  std::string api_key;  // never shown
};

class Protocol {
 public:
  virtual ~Protocol() = default;

  virtual Api api() const = 0;
  virtual std::string path() const = 0;
  virtual std::string body(const CompletionRequest& request, const AskOptions& options) const = 0;
  // Adds a reply (streamed = false) or one event of a stream to `answer`. Throws InputError
  // for a part that is not as the interface says, TransientError where it says that the server
  // failed at the request or where it was cut.
  void read(const std::string& part, bool streamed, const PartSource& source, Answer& answer) const;

  // A request for the log probabilities of `text` itself; empty where the interface has none.
  virtual std::string likelihood_body(const std::string& text, const AskOptions& options) const;
  // Its reply; nullopt where the server left them out. Throws as read() does.
  std::optional<TextLikelihood> read_likelihood(const std::string& reply,
                                                const PartSource& source) const;

 private:
  virtual std::optional<TextLikelihood> read_likelihood_part(const nlohmann::json& part) const;
  virtual void read_part(const nlohmann::json& part, bool streamed, Answer& answer) const = 0;
};

const Protocol& protocol(Api api);

}  // namespace cupel

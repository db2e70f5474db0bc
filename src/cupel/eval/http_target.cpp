#include "cupel/eval/http_target.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cupel/base/error.h"
#include "cupel/eval/http_crew.h"
#include "cupel/eval/retry.h"
#include "cupel/eval/server_sent_events.h"

namespace cupel {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kEndOfStream = "[DONE]";
constexpr std::size_t kBegin = 4096;

// A stream that was cut before its first bytes may have been one.
bool may_be_events(const std::string& begin) {
  const std::size_t first = begin.find_first_not_of("\r\n");
  if (first == std::string::npos) return true;
  const std::string_view text = std::string_view(begin).substr(first);
  for (const std::string_view field : {"data", "event", "id", "retry", ":"}) {
    if (text.starts_with(field) || field.starts_with(text)) return true;
  }
  return false;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

HttpSettings settings_of(const HttpTargetOptions& o) {
  if (o.retries < 0) throw InputError("--retries", "0 or more", std::to_string(o.retries));
  return checked_settings(o.url, o.api_key, o.timeout_seconds);
}

// Runs `action` until it succeeds or used up its tries, in the calling thread.
template <typename Action>
auto with_retries(const HttpTargetOptions& options, const Action& action) {
  Backoff backoff(options.backoff_seconds, std::random_device()());
  for (int retry = 0;; ++retry) {
    try {
      return action();
    } catch (const TransientError& error) {
      if (retry == options.retries) {
        throw InfrastructureError(fmt::format("endpoint, after {} tries", retry + 1), error.what());
      }
      const double wait = backoff.wait(retry + 1, error.retry_after_seconds());
      spdlog::warn("{}; trying again in {:.1f} s", error.what(), wait);
      std::this_thread::sleep_for(std::chrono::duration<double>(wait));
    }
  }
}

}  // namespace

HttpTarget::HttpTarget(const HttpTargetOptions& options)
    : http_(settings_of(options)), options_(options), protocol_(protocol(options.api)) {
  HttpConnection connection(http_);
  identity_ = with_retries(options_, [&] {
    return ask_identity(connection, http_, options_.api, options_.served_model);
  });
  options_.served_model = identity_.model;
}

void HttpTarget::check() {
  HttpConnection connection(http_);
  with_retries(options_, [&] {
    return ask(connection, {.prompt = "Question:", .max_new_tokens = 1, .stop = {}});
  });
}

std::string HttpTarget::model_fingerprint() const {
  std::string text = "served=" + identity_.model;
  if (!identity_.details.empty()) text += ' ' + identity_.details;
  return text;
}

std::string HttpTarget::settings() const {
  std::string text = fmt::format("api={}", api_name(options_.api));
  if (options_.api == Api::kChat) text += " prompt=one-user-message";
  return text;
}

// One try. Throws TransientError and InputError.
Completion HttpTarget::ask(HttpConnection& connection, const CompletionRequest& request) const {
  const std::string path = protocol_.path();
  const std::string where = http_.endpoint.text(path);
  const PartSource source{.url = where, .api_key = http_.api_key};
  const std::string body = protocol_.body(request, {.served_model = options_.served_model,
                                                    .stream = options_.stream,
                                                    .logprobs = options_.logprobs});
  Answer answer;
  double first_token = std::numeric_limits<double>::quiet_NaN();
  bool ended = !options_.stream;
  const auto start = Clock::now();

  HttpReply reply;
  if (options_.stream) {
    std::string begin;
    ServerSentEvents events([&](const std::string& data) {
      if (data == kEndOfStream) {
        ended = true;
      } else {
        protocol_.read(data, true, source, answer);
        if (std::isnan(first_token) && !answer.text.empty()) first_token = seconds_since(start);
      }
    });
    reply = connection.post(path, body, [&](std::string_view piece) {
      if (begin.size() < kBegin) begin += piece.substr(0, kBegin - begin.size());
      events.feed(piece);
    });
    if (reply.status == 200 && !may_be_events(begin)) {
      throw InputError(where, "a stream of events", first_bytes(without_key(begin, http_.api_key)));
    }
  } else {
    reply = connection.post(path, body);
  }
  const double total = seconds_since(start);
  if (reply.status != 200) throw_status(reply, path, http_);
  if (!options_.stream) {
    protocol_.read(reply.body, false, source, answer);
  }
  if (!answer.stop_reason || !(ended || answer.usage)) {
    throw TransientError(where + ": the stream was cut", true, std::nullopt, FailureKind::kCut);
  }
  if (!answer.usage) throw InputError(where, "token counts (usage)", "a reply without them");

  const auto margin = answer.margin.value();
  return {
      .text = std::move(answer.text),
      .output_ids = std::move(answer.output_ids),
      .stop_reason = *answer.stop_reason,
      .error = {},
      .prompt_tokens = answer.usage->prompt,
      .cached_prompt_tokens = answer.usage->cached_prompt,
      .completion_tokens = answer.usage->completion,
      .min_margin = margin ? static_cast<float>(*margin) : std::numeric_limits<float>::quiet_NaN(),
      .min_margin_step = answer.margin.step(),
      .margins = answer.margin.all(),
      .queue_seconds = std::numeric_limits<double>::quiet_NaN(),
      .first_token_seconds = first_token,
      .total_seconds = total,
      .retries = 0};
}

std::vector<TextLikelihood> HttpTarget::likelihoods(std::span<const std::string> texts) {
  HttpConnection connection(http_);
  const std::string path = protocol_.path();
  const PartSource source{.url = http_.endpoint.text(path), .api_key = http_.api_key};
  constexpr std::string_view kWanted =
      "log probabilities of the prompt (vLLM and SGLang return them on /v1/completions with echo, "
      "SGLang on /generate)";
  std::vector<TextLikelihood> all;
  for (const std::string& text : texts) {
    const std::string body =
        protocol_.likelihood_body(text, {.served_model = options_.served_model});
    if (body.empty()) {
      throw InputError(source.url, kWanted, fmt::format("--api {}", api_name(options_.api)));
    }
    const auto found = with_retries(options_, [&] {
      const HttpReply reply = connection.post(path, body);
      if (reply.status != 200) throw_status(reply, path, http_);
      return protocol_.read_likelihood(reply.body, source);
    });
    if (!found) throw InputError(source.url, kWanted, "a reply without them");
    all.push_back(*found);
  }
  return all;
}

void HttpTarget::complete(std::span<const CompletionRequest> requests, int concurrency,
                          const std::function<void(std::size_t, const Completion&)>& done) {
  HttpCrew crew(http_, {.retries = options_.retries, .backoff_seconds = options_.backoff_seconds},
                [&](HttpConnection& connection, std::size_t index) {
                  return ask(connection, requests[index]);
                });
  crew.run(requests.size(), concurrency, done);
}

}  // namespace cupel

#include "cupel/engine/engine.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <unistd.h>

#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/base/hash.h"
#include "cupel/kernels/isa.h"

namespace cupel {
namespace {

// Rows of a step beyond which no further prompt chunk is added: enough for every product to run at
// full speed, small enough for the activations to stay in cache.
constexpr std::size_t kStepRows = 512;

std::vector<bool> tokens_that_exist(const Tokenizer& tokenizer, int vocab,
                                    const std::filesystem::path& model) {
  std::vector<bool> exists(static_cast<std::size_t>(vocab));
  for (int id = 0; id < vocab; ++id) {
    exists[static_cast<std::size_t>(id)] = tokenizer.has_token(id);
  }
  if (tokenizer.id_limit() > vocab) {
    throw InputError((model / "tokenizer.json").string(),
                     fmt::format("token ids below vocab_size {}", vocab),
                     fmt::format("id {}", tokenizer.id_limit() - 1));
  }
  return exists;
}

std::size_t quarter_of_memory() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 4;
}

void require_range(const char* option, int value, int least) {
  if (value < least) {
    throw InputError(option, fmt::format("{} or more", least), std::to_string(value));
  }
}

}  // namespace

Engine::Engine(const EngineOptions& options)
    : Engine(options, make_executor(options.device, options.threads), make_backend) {}

Engine::Engine(const EngineOptions& options, std::unique_ptr<Executor> executor,
               const BackendFactory& backends)
    : options_(options),
      executor_(std::move(executor)),
      tokenizer_(Tokenizer::load(options.model / "tokenizer.json")),
      sampler_({}) {
  require_range("max_running", options.max_running, 1);
  require_range("max_waiting", options.max_waiting, 1);
  require_range("prefill_chunk", options.prefill_chunk, 0);
  require_baseline_isa();
  const Checkpoint checkpoint(options.model);
  network_ = std::make_unique<Network>(checkpoint, options.network, *executor_, backends);
  sampler_ = Sampler(tokens_that_exist(tokenizer_, config().vocab_size, options.model));
  fingerprint_ = fmt::format("{} tokenizer={}", network_->fingerprint(),
                             hash_hex(read_file(options.model / "tokenizer.json")));
  const SchedulerLimits limits{.max_running = static_cast<std::size_t>(options.max_running),
                               .max_waiting = static_cast<std::size_t>(options.max_waiting),
                               .step_rows = kStepRows,
                               .prefill_chunk = static_cast<std::size_t>(options.prefill_chunk),
                               .max_cache_bytes = options.max_cache_bytes == 0
                                                      ? quarter_of_memory()
                                                      : options.max_cache_bytes,
                               .prefix_cache = options.prefix_cache};
  if (limits.max_cache_bytes < network_->sequence_bytes(kPageTokens)) {
    throw InputError("max_cache_bytes",
                     fmt::format("at least {} (a sequence of {} tokens)",
                                 network_->sequence_bytes(kPageTokens), kPageTokens),
                     std::to_string(limits.max_cache_bytes));
  }
  scheduler_ = std::make_unique<Scheduler>(limits, *network_);
}

RequestId Engine::submit(GenerationRequest request, RequestCallbacks callbacks,
                         Clock::time_point submitted, RequestId id) {
  validate(request, "request");
  if (id == 0) id = reserve_id();
  auto sequence =
      std::make_unique<Sequence>(id, std::move(request), std::move(callbacks), submitted);
  if (sequence->request.sampling.penalises()) {
    for (const std::int32_t id : sequence->request.prompt_ids) ++sequence->history.prompt[id];
  }
  sequence->result.queue_seconds = -1;
  scheduler_->submit(std::move(sequence));
  return id;
}

bool Engine::cancel(RequestId id) {
  const auto s = scheduler_->remove(id, true);
  if (!s) return false;
  s->result.finish = FinishReason::kCancelled;
  s->result.total_seconds = std::chrono::duration<double>(Clock::now() - s->submitted).count();
  if (s->callbacks.on_done) s->callbacks.on_done(s->result);
  return true;
}

void Engine::cancel_all() {
  for (const RequestId id : scheduler_->ids()) cancel(id);
}

EngineStats Engine::stats() const {
  const SchedulerCounts& counts = scheduler_->counts();
  return {.running = scheduler_->running(),
          .waiting = scheduler_->waiting(),
          .steps = steps_,
          .prompt_tokens = counts.prompt_tokens,
          .cached_tokens = counts.cached_tokens,
          .output_tokens = output_tokens_,
          .preemptions = counts.preemptions,
          .evictions = counts.evictions,
          .kept_prefixes = scheduler_->prefixes().size(),
          .cache_bytes = network_->cache_bytes(),
          .max_cache_bytes = scheduler_->limits().max_cache_bytes};
}

void Engine::generate(std::span<const GenerationRequest> requests, int concurrency,
                      const std::function<void(std::size_t, const Generation&)>& done) {
  for (std::size_t i = 0; i < requests.size(); ++i)
    validate(requests[i], fmt::format("request {}", i));
  const Clock::time_point start = Clock::now();
  const std::size_t limit = concurrency > 0 ? static_cast<std::size_t>(concurrency)
                                            : std::numeric_limits<std::size_t>::max();
  std::size_t next = 0, under_way = 0;
  try {
    while (next < requests.size() || under_way > 0) {
      while (next < requests.size() && under_way < limit &&
             scheduler_->waiting() < scheduler_->limits().max_waiting) {
        const std::size_t index = next++;
        ++under_way;
        submit(requests[index],
               {.on_logits = {},
                .on_token = {},
                .on_done =
                    [&, index](const Generation& g) {
                      --under_way;
                      done(index, g);
                    }},
               start);
      }
      step();
      if (options_.stop_requested && options_.stop_requested()) {
        throw InfrastructureError("engine", "interrupted");
      }
    }
  } catch (...) {
    for (const RequestId id : scheduler_->ids()) scheduler_->remove(id, false);
    throw;
  }
}

std::vector<float> Engine::logits(std::span<const std::int32_t> prompt,
                                  std::span<const std::int32_t> feed) {
  if (prompt.empty()) throw InputError("prompt_ids", "at least one id", "none");
  SequenceState state = network_->open();
  const struct Closer {
    Network& network;
    SequenceState& state;
    ~Closer() { network.close(state); }
  } closer{*network_, state};

  std::vector<float> out;
  const auto chunk = static_cast<std::size_t>(options_.prefill_chunk);
  for (std::size_t at = 0; at < prompt.size();) {
    const std::size_t count = chunk == 0 ? prompt.size() : std::min(chunk, prompt.size() - at);
    const SegmentInput input{.state = &state, .ids = prompt.subspan(at, count)};
    at += count;
    const std::size_t last[] = {count - 1};
    const bool end = at == prompt.size();
    out = network_->forward(
        {&input, 1}, end ? std::span<const std::size_t>(last) : std::span<const std::size_t>());
  }
  for (const std::int32_t id : feed) {
    const SegmentInput input{.state = &state, .ids = {&id, 1}};
    const std::size_t row[] = {0};
    const auto next = network_->forward({&input, 1}, row);
    out.insert(out.end(), next.begin(), next.end());
  }
  return out;
}

}  // namespace cupel

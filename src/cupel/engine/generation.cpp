#include "cupel/engine/generation.h"

#include <algorithm>

#include "cupel/base/error.h"

namespace cupel {
namespace {

// Rows of a step beyond which no further prompt chunk is added: enough for every product to run at
// full speed, small enough for the activations to stay in cache.
constexpr std::size_t kRowBudget = 512;

// A shared prefix shorter than this is not worth a copy of the state.
constexpr std::size_t kMinSharedPrefix = 16;

std::size_t chunk_of(std::size_t left, int prefill_chunk) {
  return prefill_chunk == 0 ? left : std::min(left, static_cast<std::size_t>(prefill_chunk));
}

}  // namespace

GenerationLoop::GenerationLoop(Engine& engine, std::span<const GenerationRequest> requests,
                               int concurrency, const Done& done)
    : engine_(engine),
      requests_(requests),
      limit_(static_cast<std::size_t>(engine.options().max_running)),
      done_(done),
      start_(std::chrono::steady_clock::now()) {
  if (concurrency > 0) limit_ = std::min(limit_, static_cast<std::size_t>(concurrency));
}

GenerationLoop::~GenerationLoop() {
  for (Running& r : running_) engine_.network().close(r.state);
  if (prefix_length_ > 0) engine_.network().close(prefix_);
}

double GenerationLoop::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void GenerationLoop::run() {
  compute_shared_prefix();
  while (next_ < requests_.size() || !running_.empty()) {
    admit();
    step();
  }
}

void GenerationLoop::compute_shared_prefix() {
  if (requests_.size() < 2) return;
  const auto& first = requests_[0].prompt_ids;
  std::size_t length = first.size();
  for (const GenerationRequest& request : requests_) {
    const auto& ids = request.prompt_ids;
    // Every request keeps one prompt token of its own, whose row gives its first logits.
    const std::size_t limit = std::min(length, ids.size() - 1);
    const auto end = first.begin() + static_cast<std::ptrdiff_t>(limit);
    length = static_cast<std::size_t>(std::mismatch(first.begin(), end, ids.begin()).first -
                                      first.begin());
  }
  if (length < kMinSharedPrefix) return;
  prefix_ = engine_.network().open();
  prefix_length_ = length;
  for (std::size_t at = 0; at < length;) {
    const std::size_t count = chunk_of(length - at, engine_.options().prefill_chunk);
    const SegmentInput input{.state = &prefix_, .ids = std::span(first).subspan(at, count)};
    engine_.network().forward({&input, 1}, {});
    at += count;
  }
}

void GenerationLoop::admit() {
  while (running_.size() < limit_ && next_ < requests_.size()) {
    const GenerationRequest& request = requests_[next_];
    Network& network = engine_.network();
    Running r{.index = next_,
              .request = &request,
              .state = prefix_length_ > 0 ? network.fork(prefix_) : network.open(),
              .prompt_done = prefix_length_,
              .last_token = -1,
              .stops = StopMatcher(request.stop),
              .result = {}};
    r.result.cached_prompt_tokens = static_cast<int>(prefix_length_);
    r.result.queue_seconds = -1;
    running_.push_back(std::move(r));
    ++next_;
  }
}

void GenerationLoop::step() {
  std::vector<SegmentInput> inputs;
  std::vector<std::size_t> logits_rows;
  std::vector<Running*> sampled;  // whose logits come out of this step
  std::size_t rows = 0;
  for (Running& r : running_) {
    if (r.last_token < 0) continue;
    inputs.push_back({.state = &r.state, .ids = {&r.last_token, 1}});
    logits_rows.push_back(rows++);
    sampled.push_back(&r);
  }
  for (Running& r : running_) {
    const auto& prompt = r.request->prompt_ids;
    if (r.last_token >= 0) continue;
    if (rows >= kRowBudget) break;
    const std::size_t count =
        chunk_of(prompt.size() - r.prompt_done, engine_.options().prefill_chunk);
    if (r.result.queue_seconds < 0) r.result.queue_seconds = seconds();
    inputs.push_back({.state = &r.state, .ids = std::span(prompt).subspan(r.prompt_done, count)});
    rows += count;
    r.prompt_done += count;
    if (r.prompt_done == prompt.size()) {
      logits_rows.push_back(rows - 1);
      sampled.push_back(&r);
    }
  }

  const std::vector<float> logits = engine_.network().forward(inputs, logits_rows);
  const auto vocab = static_cast<std::size_t>(engine_.config().vocab_size);
  for (std::size_t i = 0; i < sampled.size(); ++i) {
    Running& r = *sampled[i];
    const std::size_t produced = r.result.output_ids.size();
    bool ended = true;
    try {
      ended =
          accept(r, engine_.sampler().sample(std::span(logits).subspan(i * vocab, vocab),
                                             r.request->temperature, r.request->seed, produced));
    } catch (const Error& error) {
      // This request is lost; the others go on.
      r.result.finish = FinishReason::kError;
      r.result.error = error.what();
    }
    if (ended) finish(r);
  }
  std::erase_if(running_, [](const Running& r) { return r.state.slot < 0; });
}

bool GenerationLoop::accept(Running& r, const SampledToken& token) {
  Generation& g = r.result;
  if (g.output_ids.empty()) g.first_token_seconds = seconds();
  g.margins.push_back(token.margin);
  if (token.margin < g.min_margin) {
    g.min_margin = token.margin;
    g.min_margin_step = static_cast<int>(g.output_ids.size());
  }
  g.output_ids.push_back(token.id);
  r.last_token = token.id;
  if (token.id == engine_.config().eos_token_id) {
    g.finish = FinishReason::kEos;
    return true;
  }
  g.text += engine_.tokenizer().token_bytes(token.id);
  if (const auto match = r.stops.feed(engine_.tokenizer().token_bytes(token.id))) {
    g.text.resize(match->text_length);
    g.finish = FinishReason::kStopString;
    return true;
  }
  if (g.output_ids.size() == static_cast<std::size_t>(r.request->max_new_tokens)) {
    g.finish = FinishReason::kLength;
    return true;
  }
  return false;
}

void GenerationLoop::finish(Running& r) {
  r.result.total_seconds = seconds();
  engine_.network().close(r.state);
  done_(r.index, r.result);
}

}  // namespace cupel

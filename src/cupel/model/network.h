// The target network (spec section 3): embedding, blocks of attention and mixture-of-experts joined
// by hyper-connections, output head.
//
// A step may hold rows of any number of sequences, prompt chunks and single tokens mixed; the
// result of a row depends on its own sequence alone (DESIGN section 5).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cupel/attention/backend.h"
#include "cupel/checkpoint/checkpoint.h"
#include "cupel/checkpoint/weight_source.h"
#include "cupel/kernels/executor.h"
#include "cupel/kernels/numerics.h"
#include "cupel/model/sequence_store.h"
#include "cupel/model/step.h"
#include "cupel/model/weights.h"

namespace cupel {

struct NetworkOptions {
  BackendKind backend = BackendKind::kUnified;
  KvDtype kv_dtype = KvDtype::kAuto;
  Numerics numerics = Numerics::kReference;
  WeightsForm weights = WeightsForm::kRepack;  // does not change a result
};

// Tokens to append to one sequence.
struct SegmentInput {
  SequenceState* state = nullptr;
  std::span<const std::int32_t> ids;  // at least one, each in [0, vocab)
};

// Mixture weights of one half-block and the mixed input.
struct HyperMix {
  DeviceArray<float> mixed;  // [rows, hidden]: u
  DeviceArray<float> post;   // [rows, hc]
  DeviceArray<float> comb;   // [rows, hc, hc]
};

enum class Half { kAttention, kMoe };

// Which part of the network first gave a row values that are not finite.
struct FaultOrigin {
  int halves = -1;  // -1: none before the head; else half-blocks done before: 0 = the embedding
};
std::string describe(const FaultOrigin& origin);

class Network final : public SequenceStore {
 public:
  // The executor must outlive the network. `backends` makes the attention backend that goes with
  // it.
  Network(const WeightSource& source, const NetworkOptions& options, Executor& executor,
          const BackendFactory& backends = make_backend);

  SequenceState open() override;
  void close(SequenceState& state) override;
  SequenceState fork(const SequenceState& from) override;
  std::size_t sequence_bytes(std::int64_t length) const override;
  std::size_t cache_bytes() const override;

  // Appends the inputs and returns logits [logits_rows.size(), vocab] fp32 of the given rows, where
  // row numbers count over all inputs in order. Inputs must belong to different sequences.
  // `origins`, if given, tells for each of these rows where a value that is not finite came up
  // first.
  std::vector<float> forward(std::span<const SegmentInput> inputs,
                             std::span<const std::size_t> logits_rows,
                             const StepTaps* taps = nullptr,
                             std::vector<FaultOrigin>* origins = nullptr);

  // The parts of a block, for tests and comparisons that start from given values. Addresses are
  // the device's; `streams` is [rows, hc, hidden].
  StepContext make_step(std::span<const SegmentInput> inputs, const StepTaps* taps = nullptr) const;
  DeviceArray<float> embed(const StepContext& step) const;
  HyperMix mix(int layer, Half half, const float* streams, std::size_t rows) const;
  // Attention or MoE output [rows, hidden] for a mixed input u; attention stores the rows' keys.
  DeviceArray<float> half(int layer, Half half, const StepContext& step, const HyperMix& mix);
  void join(const HyperMix& mix, const float* y, float* streams, std::size_t rows) const;
  DeviceArray<float> final_hidden(const float* streams, std::size_t rows) const;  // [rows, hidden]
  DeviceArray<float> logits(const float* hidden, std::size_t rows) const;         // [rows, vocab]

  const ModelConfig& config() const { return config_; }
  AttentionBackend& backend() { return *backend_; }
  // Names model, backend, numerics and KV dtype.
  std::string fingerprint() const;
  std::size_t weight_bytes() const { return weights_.bytes; }

 private:
  // fn . flatten(streams), [rows, outputs of fn].
  DeviceArray<float> hyper_products(const HyperWeights& hyper, const float* streams,
                                    std::size_t rows) const;
  bool compressed(int layer) const { return config_.kind(layer) != LayerKind::kSlidingOnly; }

  ModelConfig config_;
  NetworkOptions options_;
  Executor& executor_;
  NetworkWeights weights_;
  std::unique_ptr<AttentionBackend> backend_;
  std::vector<float> plain_frequencies_, compressed_frequencies_;
  std::string checkpoint_fingerprint_;
  std::size_t state_bytes_ = 0;  // of a sequence's compressor states
  std::size_t open_states_ = 0;
};

}  // namespace cupel

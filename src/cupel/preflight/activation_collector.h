// What the formats do to the activations of one running checkpoint, layer by layer.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cupel/base/thread_pool.h"
#include "cupel/checkpoint/checkpoint.h"
#include "cupel/model/step.h"
#include "cupel/preflight/figures.h"
#include "cupel/preflight/statistics.h"

namespace cupel {

// Fed by the taps of forward passes of the published rounding (numerics reference). Every pass must
// hold one whole prompt, from position 0: what a query sees is then in the step itself.
class ActivationCollector {
 public:
  // Both must outlive the collector.
  ActivationCollector(const Checkpoint& checkpoint, ThreadPool& pool);

  // For Network::forward; refers to this object.
  StepTaps taps();

  // By layer, over all passes so far.
  std::vector<LayerFigures> figures() const;
  // Quantisation groups with NaN or infinity, over all layers.
  std::uint64_t broken_groups() const;

 private:
  struct Rows {  // KV rows or compressed entries
    E4m3Range range;
    SignalToNoise error;
  };
  struct Layer {
    std::vector<float> router_bias;  // empty: a hash layer
    bool routes_by_score = true;
    Rows kv, entries;
    SignalToNoise key_fp4, key_fp8, query_fp4, query_fp8;
    std::uint64_t rows = 0;
    std::uint64_t selecting = 0;
    Sample agreement_fp4, agreement_fp8;
    E4m3Range expert_in, expert_hidden;
    SignalToNoise expert_in_error, expert_hidden_error;
    Sample router_margin;
    std::vector<Sample> sink;  // by head
  };
  // The entries that each sampled row attends to, ascending; ratio 4 only.
  using Selections = std::vector<std::vector<std::int32_t>>;

  void see_attention(const AttentionStep& step);
  void see_values(std::string_view name, int layer, std::span<const float> values,
                  std::size_t width);

  static std::vector<float> see_rows(const float* rows, std::size_t count, Rows& out);
  Selections see_indexer(const AttentionStep& step, std::size_t entries,
                         std::span<const std::size_t> sampled, Layer& layer) const;
  void see_sinks(const AttentionStep& step, std::span<const float> kv,
                 std::span<const float> entries, std::span<const std::size_t> sampled,
                 const Selections& selections, Layer& layer) const;
  void see_expert_input(std::span<const float> values, std::size_t width, E4m3Range& range,
                        SignalToNoise& error) const;
  void see_router(std::span<const float> logits, std::size_t experts, Layer& layer) const;

  const ModelConfig& config_;
  ThreadPool& pool_;
  std::vector<Layer> layers_;
};

}  // namespace cupel

// Two configurations compared by meaning, and what each implies (spec sections 1.1, 2, 8.27-28).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cupel/checkpoint/config.h"

namespace cupel {

// What a difference can reach.
enum class Touches {
  kTarget,   // the main network's outputs
  kDrafter,  // proposals of a drafter only: speed, never the target's tokens
  kNothing,  // no value that an engine computes with
  kUnknown,  // a field that this program does not know
};
std::string_view touches_name(Touches touches);  // "target", "drafter", "nothing", "unknown"

struct ConfigChange {
  std::string field;  // "rope_scaling.factor" for a field of a nested object
  std::string before;
  std::string after;  // compact JSON; "absent" where the file does not have the field
  Touches touches = Touches::kUnknown;
  std::string meaning;
};

// Every field that differs, those that touch the target first, then by name. Numbers are compared
// by value; a field that is absent on one side and has its default on the other touches nothing.
// `before`, `after`: texts of config.json, each a JSON object (else InputError naming the `where`).
// compress_ratios is split at num_hidden_layers: entries of main layers touch the target, the rest
// the drafter.
std::vector<ConfigChange> diff_configs(std::string_view before, std::string_view before_where,
                                       std::string_view after, std::string_view after_where);

// The main-layer part of compress_ratios, compared although the lists may differ in length.
bool same_main_ratios(const ModelConfig& a, const ModelConfig& b);

// What follows from a configuration alone.
struct ConfigFacts {
  int sliding_only_layers = 0;   // ratio 0
  int sparse_layers = 0;         // ratio 4
  int dense_entries_layers = 0;  // ratio 128
  int ratio_entries = 0;         // of compress_ratios, drafter included

  DrafterKind drafter = DrafterKind::kNone;
  // Entries of compress_ratios beyond the main layers; num_nextn_predict_layers says 1 although
  // DSpark stores three.
  int drafter_stages = 0;

  // Tensors and bytes by the catalogue, experts in the form of config.expert_dtype, scales as E8M0.
  std::int64_t target_tensors = 0;
  std::uint64_t target_bytes = 0;
  std::uint64_t expert_bytes = 0;    // routed experts of the main layers, part of target_bytes
  std::int64_t drafter_tensors = 0;  // what a load of the target alone skips
  std::uint64_t drafter_bytes = 0;

  // Cache of one sequence (DESIGN section 4): bytes that grow with each token of context, entries
  // and index keys over all main layers, without the padding of pages; and the fixed window.
  struct Cache {
    std::string backend;
    double bytes_per_token = 0;
    std::uint64_t window_bytes = 0;
  };
  std::vector<Cache> caches;

  // Context below which the indexer leaves nothing out: it chooses index_topk entries of 4 tokens,
  // and of so many all are taken.
  std::int64_t indexer_idle_below = 0;
};
// `stages`: drafter stages where the folder tells (mtp.N names), nullopt: from compress_ratios.
ConfigFacts derive_facts(const ModelConfig& config, std::optional<int> stages);

// GPUs of `gib` GiB for the target's weights and one sequence of `tokens` in the packed cache
// within 90 % of their memory, as a power of two (tensor-parallel ranks divide the heads). Parts
// that every rank repeats are counted once: a lower bound.
int gpus_needed(const ConfigFacts& facts, double gib, std::int64_t tokens);

}  // namespace cupel

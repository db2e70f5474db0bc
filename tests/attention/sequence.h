// A sequence of random inputs for one backend, fed in any cut, in company or alone.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "cupel/attention/backend.h"
#include "cupel/attention/staged_backend.h"
#include "cupel/kernels/cpu/cpu_executor.h"

namespace cupel::test {

inline constexpr std::size_t kHeads = 8, kIndexHeads = 6, kTopk = 16, kRow = 512, kIndexRow = 128;
inline constexpr int kWindow = 128;
// Layers 0, 1 and 2 have these ratios.
inline constexpr int kRatios[] = {0, 4, 128};

// Eight heads, six index heads, top-k 16, window 128, three layers.
ModelConfig small_config();

struct Setting {
  std::string name;
  BackendKind kind;
  KvDtype dtype = KvDtype::kAuto;
  Numerics numerics = Numerics::kReference;

  std::unique_ptr<StagedBackend> make(Executor& executor) const;
};
inline void PrintTo(const Setting& setting, std::ostream* out) {
  *out << setting.name;
}
// The three backends, with both storages of unified.
std::vector<Setting> settings();

// What the model would hand over for positions [0, length) of one layer.
struct Sequence {
  Sequence(std::uint64_t seed, std::size_t length, int ratio);

  int ratio;
  std::size_t length;
  std::vector<float> q, kv, entries, index_keys, index_q, index_weights;
  static const std::vector<float>& sink();
};

struct Output {
  std::vector<float> out;               // [length, kHeads, 512]
  std::vector<std::int32_t> selection;  // [length, kTopk]
};

// One sequence of a step: positions [start, start + rows).
struct Part {
  const Sequence* sequence;
  int slot;
  std::size_t start, rows;
  Output* output;  // receives its rows
};
// Runs the parts as the segments of one step of the layer.
void run_step(StagedBackend& backend, int layer, std::span<const Part> parts);

// Feeds the whole sequence to a slot in chunks; a size list shorter than needed repeats its last.
Output run_chunks(StagedBackend& backend, int layer, int slot, const Sequence& sequence,
                  const std::vector<std::size_t>& sizes);

}  // namespace cupel::test

#include "cupel/kernels/executor.h"

#include "cupel/base/error.h"
#include "cupel/kernels/cpu/cpu_executor.h"

namespace cupel {

std::unique_ptr<Executor> make_executor(std::string_view device, int threads) {
  if (device == Device{}.type) return std::make_unique<CpuExecutor>(threads);
  throw InputError("device", "cpu", device);
}

RopeTable::RopeTable(Executor& executor, std::span<const float> frequencies,
                     std::span<const std::int64_t> positions)
    : dim(2 * frequencies.size()),
      cosines(executor, positions.size() * frequencies.size()),
      sines(executor, positions.size() * frequencies.size()) {
  executor.rope_table({.frequencies = frequencies,
                       .positions = positions,
                       .cosines = cosines.data(),
                       .sines = sines.data()});
}

}  // namespace cupel

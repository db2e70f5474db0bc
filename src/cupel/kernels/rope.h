// Rotary position embedding on interleaved pairs, plain or with YaRN (spec section 3.4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cupel/base/thread_pool.h"
#include "cupel/kernels/device_array.h"

namespace cupel {

class Executor;

struct RopeSettings {
  std::size_t dim = 64;  // rotary elements
  double theta = 10000;
  bool yarn = false;
  double factor = 1;
  double beta_fast = 32;
  double beta_slow = 1;
  double original_positions = 65536;
};

// freq[i] for i in [0, dim/2), fp32.
std::vector<float> rope_frequencies(const RopeSettings& settings);

// cos and sin of position * frequency for a list of positions.
struct RopeTable {
  RopeTable() = default;
  RopeTable(Executor& executor, std::span<const float> frequencies,
            std::span<const std::int64_t> positions);

  std::size_t dim = 0;                // rotary elements
  DeviceArray<float> cosines, sines;  // [positions, dim/2]
};

struct RopeTableParams {
  std::span<const float> frequencies;       // [dim/2], on the host
  std::span<const std::int64_t> positions;  // on the host
  float* cosines = nullptr;                 // out [positions, dim/2]
  float* sines = nullptr;                   // out [positions, dim/2]
};
void rope_table(ThreadPool& pool, const RopeTableParams& params);

// Rotates the last `dim` elements of each vector, in place.
struct RopeParams {
  float* x = nullptr;       // [rows, vectors, width]
  std::size_t rows = 0;     // row r is at the r-th position of the table below
  std::size_t vectors = 1;  // heads
  std::size_t width = 0;
  std::size_t dim = 0;             // of the table
  const float* cosines = nullptr;  // [rows, dim/2]
  const float* sines = nullptr;    // [rows, dim/2]
  bool inverse = false;            // multiply by the conjugate
  bool round_bf16 = false;
};
void rope(ThreadPool& pool, const RopeParams& params);

}  // namespace cupel

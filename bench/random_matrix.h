// Matrices of random codes, as fast as they can be packed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cupel/base/thread_pool.h"
#include "cupel/kernels/cpu/packed_matrix.h"

namespace cupel::bench {

struct Shape {
  std::string name;
  PackedMatrix::Format format;
  std::size_t n, k;
};

// The products of V4-Flash (spec section 2.2); wo_a by its groups.
std::vector<Shape> flash_shapes();

// The numbers differ from one `seed` to the next in their order only.
PackedMatrix random_matrix(const Shape& shape, std::size_t seed);
// As many as at least `bytes` hold.
std::vector<PackedMatrix> random_matrices(const Shape& shape, std::size_t bytes);
std::vector<float> random_floats(std::size_t count);
// Rows as the engine hands them to a product: quantised activations for FP4 and FP8.
std::vector<float> random_inputs(ThreadPool& pool, const Shape& shape, std::size_t rows);

}  // namespace cupel::bench

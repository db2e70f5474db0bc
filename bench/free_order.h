// A one-row product that may add in any order: what the determinism contract costs is the time of
// linear() against this.
#pragma once

#include "cupel/base/thread_pool.h"
#include "cupel/kernels/cpu/packed_matrix.h"

namespace cupel::bench {

// out [n] = W x. Two chains over the whole length for each output, scales on the weights, no block
// sums; the same decoding as the product kernels. n is a multiple of 64, k of 128.
void free_order_product(ThreadPool& pool, const PackedMatrix& weight, const float* x, float* out);

}  // namespace cupel::bench

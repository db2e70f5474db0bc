// What the machine can do, for ratios: reading memory, and OpenBLAS sgemm.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cupel/base/thread_pool.h"
#include "cupel/kernels/aligned_buffer.h"

namespace cupel::bench {

// At least 1 GiB, so that no cache holds it from one pass to the next.
class ReadBandwidth {
 public:
  explicit ReadBandwidth(ThreadPool& pool);
  // Sums all words once, with every thread of the pool.
  void read();
  std::size_t bytes() const { return words_.size(); }

 private:
  ThreadPool& pool_;
  AlignedBuffer words_;  // memory as the weights have it
  std::vector<std::uint64_t> sums_;
};

// c [rows, n] = x [rows, k] w [n, k]^T in fp32 by OpenBLAS.
void sgemm(std::size_t rows, std::size_t n, std::size_t k, const float* x, const float* w,
           float* c);
void set_sgemm_threads(int threads);
// The kernel that OpenBLAS runs, for example "SkylakeX".
std::string sgemm_core();

// Debian's OpenBLAS picks a slow kernel on some processors: has the variable OPENBLAS_CORETYPE set
// for `isa` (active_isa()) unless it is, by starting the program again; then the threads of
// OpenBLAS are told to sleep between products, too. Returns if it is set.
void choose_sgemm_core(const std::string& isa, char** argv);

}  // namespace cupel::bench

#include "yardstick.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <cblas.h>
#include <unistd.h>

namespace cupel::bench {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 30;
constexpr std::size_t kPart = std::size_t{1} << 20;  // bytes of a unit

constexpr const char* kCoreVariable = "OPENBLAS_CORETYPE";
// OpenBLAS's threads spin for 2^26 cycles after a product, and what is timed next may have to share
// a processor with them for its whole length. 2^4 cycles do not slow sgemm at the sizes used here.
constexpr const char* kSpinVariable = "OPENBLAS_THREAD_TIMEOUT";
constexpr const char* kShortestSpin = "4";

// Many accumulators, so that additions do not wait for one another.
std::uint64_t sum(const std::uint64_t* words, std::size_t count) {
  constexpr std::size_t kLanes = 32;
  std::uint64_t lanes[kLanes] = {};
  for (std::size_t i = 0; i < count; i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) lanes[j] += words[i + j];
  }
  std::uint64_t total = 0;
  for (const std::uint64_t lane : lanes) total += lane;
  return total;
}

}  // namespace

ReadBandwidth::ReadBandwidth(ThreadPool& pool)
    : pool_(pool), words_(kBytes), sums_(kBytes / kPart) {
  pool_.parallel_for(sums_.size(),
                     [&](std::size_t i, int) { std::memset(words_.data() + i * kPart, 1, kPart); });
}

void ReadBandwidth::read() {
  pool_.parallel_for(sums_.size(), [&](std::size_t i, int) {
    sums_[i] = sum(reinterpret_cast<const std::uint64_t*>(words_.data() + i * kPart),
                   kPart / sizeof(std::uint64_t));
  });
}

void sgemm(std::size_t rows, std::size_t n, std::size_t k, const float* x, const float* w,
           float* c) {
  const auto m_ = static_cast<blasint>(rows), n_ = static_cast<blasint>(n),
             k_ = static_cast<blasint>(k);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m_, n_, k_, 1.0f, x, k_, w, k_, 0.0f, c, n_);
}

void set_sgemm_threads(int threads) {
  openblas_set_num_threads(threads);
}

std::string sgemm_core() {
  return openblas_get_corename();
}

void choose_sgemm_core(const std::string& isa, char** argv) {
  if (std::getenv(kCoreVariable) != nullptr) return;
  ::setenv(kCoreVariable, isa == "avx2" ? "Haswell" : "SkylakeX", 1);
  ::setenv(kSpinVariable, kShortestSpin, 0);
  ::execv("/proc/self/exe", argv);
}

}  // namespace cupel::bench

#include "cupel/kernels/cpu/cpu_executor.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "cupel/kernels/aligned_buffer.h"
#include "cupel/kernels/cpu/packed_matrix.h"

namespace cupel {
namespace {

// A step's large arrays have other sizes each time. In the heap the room between them stays, and a
// server's peak rose by 180 MiB; maps of their own leave nothing behind. For smaller ones their
// page faults cost more than they save.
constexpr std::size_t kOwnMap = std::size_t{8} << 20;

}  // namespace

void* CpuExecutor::allocate(std::size_t bytes) {
  if (bytes >= kOwnMap) return map_pages(bytes);
  constexpr std::size_t kLine = 64;
  void* memory = std::aligned_alloc(kLine, (bytes + kLine - 1) / kLine * kLine);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void CpuExecutor::release(void* memory, std::size_t bytes) noexcept {
  if (bytes >= kOwnMap) return unmap_pages(memory, bytes);
  std::free(memory);
}

void CpuExecutor::to_device(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

void CpuExecutor::to_host(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

void CpuExecutor::copy(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

std::unique_ptr<Matrix> CpuExecutor::make_matrix(Matrix::Format format, std::size_t n,
                                                 std::size_t k) {
  return std::make_unique<PackedMatrix>(PackedMatrix::zero(format, n, k));
}

std::unique_ptr<Matrix> CpuExecutor::map_matrix(Matrix::Format format, std::size_t n, std::size_t k,
                                                const std::byte* codes,
                                                const std::byte* fp4_scales) {
  return std::make_unique<PackedMatrix>(PackedMatrix::in_place(format, n, k, codes, fp4_scales));
}

void CpuExecutor::linear(std::span<const LinearParams> products) {
  cupel::linear(pool_, products);
}

void CpuExecutor::embed(const EmbedParams& params) {
  cupel::embed(pool_, params);
}

void CpuExecutor::gather_rows(const GatherRowsParams& params) {
  cupel::gather_rows(pool_, params);
}

void CpuExecutor::mark_not_finite(const MarkNotFiniteParams& params) {
  cupel::mark_not_finite(pool_, params);
}

void CpuExecutor::rms_norm(const RmsNormParams& params) {
  cupel::rms_norm(pool_, params);
}

void CpuExecutor::head_norm(const HeadNormParams& params) {
  cupel::head_norm(pool_, params);
}

void CpuExecutor::rope_table(const RopeTableParams& params) {
  cupel::rope_table(pool_, params);
}

void CpuExecutor::rope(const RopeParams& params) {
  cupel::rope(pool_, params);
}

void CpuExecutor::hadamard(const HadamardParams& params) {
  cupel::hadamard(pool_, params);
}

void CpuExecutor::scale(const ScaleParams& params) {
  cupel::scale(pool_, params);
}

void CpuExecutor::quantise_activation(const QuantiseActivationParams& params) {
  cupel::quantise_activation(pool_, params);
}

void CpuExecutor::swiglu(const SwigluParams& params) {
  cupel::swiglu(pool_, params);
}

void CpuExecutor::route(const RouteParams& params) {
  cupel::route(pool_, params);
}

void CpuExecutor::expert_batch(const ExpertBatchParams& params) {
  cupel::expert_batch(pool_, params);
}

void CpuExecutor::expert_sum(const ExpertSumParams& params) {
  cupel::expert_sum(pool_, params);
}

void CpuExecutor::compress_windows(const CompressWindowsParams& params) {
  cupel::compress_windows(pool_, params);
}

void CpuExecutor::hyper_mix(const HyperMixParams& params) {
  cupel::hyper_mix(pool_, params);
}

void CpuExecutor::hyper_join(const HyperJoinParams& params) {
  cupel::hyper_join(pool_, params);
}

void CpuExecutor::hyper_head(const HyperHeadParams& params) {
  cupel::hyper_head(pool_, params);
}

}  // namespace cupel

// Runs the operations with the kernels of this folder, at once, on the threads of the host.
#pragma once

#include "cupel/kernels/executor.h"

namespace cupel {

class CpuExecutor : public Executor {
 public:
  // 0 = one per hardware thread.
  explicit CpuExecutor(int threads) : pool_(threads) {}

  Device device() const override { return {}; }
  void* allocate(std::size_t bytes) override;
  void release(void* memory, std::size_t bytes) noexcept override;
  void to_device(void* to, const void* from, std::size_t bytes) override;
  void to_host(void* to, const void* from, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;

  ThreadPool& host_threads() override { return pool_; }
  std::unique_ptr<Matrix> make_matrix(Matrix::Format format, std::size_t n, std::size_t k) override;
  std::unique_ptr<Matrix> map_matrix(Matrix::Format format, std::size_t n, std::size_t k,
                                     const std::byte* codes, const std::byte* fp4_scales) override;

  using Executor::linear;
  void linear(std::span<const LinearParams> products) override;
  void embed(const EmbedParams& params) override;
  void gather_rows(const GatherRowsParams& params) override;
  void mark_not_finite(const MarkNotFiniteParams& params) override;
  void rms_norm(const RmsNormParams& params) override;
  void head_norm(const HeadNormParams& params) override;
  void rope_table(const RopeTableParams& params) override;
  void rope(const RopeParams& params) override;
  void hadamard(const HadamardParams& params) override;
  void scale(const ScaleParams& params) override;
  void quantise_activation(const QuantiseActivationParams& params) override;
  void swiglu(const SwigluParams& params) override;
  void route(const RouteParams& params) override;
  void expert_batch(const ExpertBatchParams& params) override;
  void expert_sum(const ExpertSumParams& params) override;
  void compress_windows(const CompressWindowsParams& params) override;
  void hyper_mix(const HyperMixParams& params) override;
  void hyper_join(const HyperJoinParams& params) override;
  void hyper_head(const HyperHeadParams& params) override;

 private:
  ThreadPool pool_;
};

}  // namespace cupel

// A second executor, deliberately slow: one thread, weights as published and decoded anew for every
// multiply-add, and memory that the host cannot touch except inside an operation. What runs on it
// as on the CPU reads no device memory behind the executor's back, and gets from products no more
// than their contract.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "cupel/attention/backend.h"
#include "cupel/kernels/executor.h"

namespace cupel::test {

// Pages out of reach unless an Access is alive. Addresses come back after release.
class GuardedMemory {
 public:
  GuardedMemory();
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  void* allocate(std::size_t bytes);
  void release(void* memory, std::size_t bytes) noexcept;
  std::size_t bytes_in_use() const { return in_use_; }

  class Access {
   public:
    explicit Access(GuardedMemory& memory);
    ~Access();
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    GuardedMemory& memory_;
  };

 private:
  void protect(int protection) const;

  std::byte* begin_ = nullptr;
  std::size_t used_ = 0;  // bytes handed out at some time
  std::size_t in_use_ = 0;
  std::multimap<std::size_t, std::byte*> free_;  // by size
  int open_ = 0;
};

class GuardedExecutor final : public Executor {
 public:
  GuardedExecutor() : pool_(1) {}

  Device device() const override { return {.type = "guarded"}; }
  void* allocate(std::size_t bytes) override { return memory_.allocate(bytes); }
  void release(void* memory, std::size_t bytes) noexcept override {
    memory_.release(memory, bytes);
  }
  void to_device(void* to, const void* from, std::size_t bytes) override;
  void to_host(void* to, const void* from, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;

  ThreadPool& host_threads() override { return pool_; }
  std::unique_ptr<Matrix> make_matrix(Matrix::Format format, std::size_t n, std::size_t k) override;

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

  GuardedMemory& memory() { return memory_; }

 private:
  GuardedMemory memory_;
  ThreadPool pool_;
};

// The CPU's backends, given the memory of the executor, which must be a GuardedExecutor.
std::unique_ptr<AttentionBackend> make_guarded_backend(BackendKind kind, KvDtype dtype,
                                                       Numerics numerics, const ModelConfig& config,
                                                       Executor& executor);

}  // namespace cupel::test

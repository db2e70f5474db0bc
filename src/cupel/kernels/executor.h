// The seam for accelerators: memory of a device, and every operation the model is made of.
//
// Operations take plain parameter structs (one header each) whose addresses are the device's,
// unless a field says "on the host". They run in the order of the calls and may still run when a
// call returns; parameters, host spans included, are read before it returns. DeviceArray::to_host
// waits for what it copies. What an operation computes is defined by its header, bit by bit (DESIGN
// section 5): executors differ in speed alone.
//
// A new device adds an executor here, the attention backends that go with it (attention/backend.h),
// and a name in make_executor. Nothing in model/ or engine/ knows which one runs.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "cupel/base/thread_pool.h"
#include "cupel/kernels/activation.h"
#include "cupel/kernels/compress_windows.h"
#include "cupel/kernels/device_array.h"
#include "cupel/kernels/elementwise.h"
#include "cupel/kernels/expert_batch.h"
#include "cupel/kernels/finite.h"
#include "cupel/kernels/gather.h"
#include "cupel/kernels/hyper_connection.h"
#include "cupel/kernels/linear.h"
#include "cupel/kernels/matrix.h"
#include "cupel/kernels/norm.h"
#include "cupel/kernels/rope.h"
#include "cupel/kernels/router.h"

namespace cupel {

class Executor : public DeviceMemory {
 public:
  // Threads of the host, for work that is not the device's: reading and packing weights.
  virtual ThreadPool& host_threads() = 0;

  // An empty matrix, to be filled.
  virtual std::unique_ptr<Matrix> make_matrix(Matrix::Format format, std::size_t n,
                                              std::size_t k) = 0;
  // A matrix that reads its published bytes where they are, which must outlive it: codes, and the
  // scales of kFp4 (else nullptr), as for Matrix::pack_... with all panels. nullptr if this
  // executor cannot.
  virtual std::unique_ptr<Matrix> map_matrix(Matrix::Format, std::size_t /*n*/, std::size_t /*k*/,
                                             const std::byte* /*codes*/,
                                             const std::byte* /*fp4_scales*/) {
    return nullptr;
  }

  // All products may run at once; they must not write the same memory.
  virtual void linear(std::span<const LinearParams> products) = 0;
  void linear(const LinearParams& product) { linear(std::span(&product, 1)); }

  virtual void embed(const EmbedParams& params) = 0;
  virtual void gather_rows(const GatherRowsParams& params) = 0;
  virtual void mark_not_finite(const MarkNotFiniteParams& params) = 0;
  virtual void rms_norm(const RmsNormParams& params) = 0;
  virtual void head_norm(const HeadNormParams& params) = 0;
  virtual void rope_table(const RopeTableParams& params) = 0;
  virtual void rope(const RopeParams& params) = 0;
  virtual void hadamard(const HadamardParams& params) = 0;
  virtual void scale(const ScaleParams& params) = 0;
  virtual void quantise_activation(const QuantiseActivationParams& params) = 0;
  virtual void swiglu(const SwigluParams& params) = 0;
  virtual void route(const RouteParams& params) = 0;
  virtual void expert_batch(const ExpertBatchParams& params) = 0;
  virtual void expert_sum(const ExpertSumParams& params) = 0;
  virtual void compress_windows(const CompressWindowsParams& params) = 0;
  virtual void hyper_mix(const HyperMixParams& params) = 0;
  virtual void hyper_join(const HyperJoinParams& params) = 0;
  virtual void hyper_head(const HyperHeadParams& params) = 0;
};

// Throws InputError for a device this build does not have. `threads`: of the host, 0 = one per
// hardware thread.
std::unique_ptr<Executor> make_executor(std::string_view device, int threads);

}  // namespace cupel

#include "support/guarded_executor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <stdexcept>
#include <vector>

#include <sys/mman.h>

#include "cupel/formats/bf16.h"
#include "cupel/formats/e2m1.h"
#include "cupel/formats/e4m3.h"
#include "cupel/formats/e8m0.h"
#include "cupel/kernels/cpu/cpu_executor.h"

namespace cupel::test {
namespace {

constexpr std::size_t kReserved = std::size_t{1} << 32;  // of addresses
constexpr std::size_t kPage = 4096;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

// The published bytes, row-major, in guarded memory.
class PublishedMatrix final : public Matrix {
 public:
  PublishedMatrix(GuardedExecutor& executor, Format format, std::size_t n, std::size_t k)
      : Matrix(format, n, k),
        memory_(executor.memory()),
        codes_(executor, n * row_bytes()),
        fp4_scales_(executor, format == Format::kFp4 ? n * k / kFp4Group : 0),
        fp8_scales_(executor, format == Format::kFp8 ? blocks(n) * blocks(k) : 0) {}

  void pack_codes(std::size_t panel_begin, std::size_t panel_end, const std::byte* codes) override {
    put(codes_, row_bytes(), panel_begin, panel_end, codes);
  }
  void pack_fp4_scales(std::size_t panel_begin, std::size_t panel_end,
                       const std::byte* scales) override {
    put(fp4_scales_, k() / kFp4Group, panel_begin, panel_end, scales);
  }
  void set_fp8_scales(std::span<const float> scales) override {
    const GuardedMemory::Access access(memory_);
    std::ranges::copy(scales, fp8_scales_.data());
  }
  std::size_t bytes() const override {
    return codes_.bytes() + fp4_scales_.bytes() + fp8_scales_.bytes();
  }

  // W[row, i]. Needs access.
  float value(std::size_t row, std::size_t i) const {
    const std::byte* codes = codes_.data() + row * row_bytes();
    switch (format()) {
      case Format::kFp4: {
        const auto pair = std::to_integer<std::uint8_t>(codes[i / 2]);
        const std::size_t group = row * (k() / kFp4Group) + i / kFp4Group;
        return e2m1_to_float(i % 2 == 0 ? e2m1_even(pair) : e2m1_odd(pair)) *
               e8m0_to_float(std::to_integer<std::uint8_t>(fp4_scales_.data()[group]));
      }
      case Format::kFp8:
        return e4m3_to_float(std::to_integer<std::uint8_t>(codes[i])) *
               fp8_scales_.data()[row / kFp8Block * blocks(k()) + i / kFp8Block];
      case Format::kBf16: {
        std::uint16_t bits;
        std::memcpy(&bits, codes + 2 * i, sizeof bits);
        return bf16_to_float(bits);
      }
      case Format::kF32:
        break;
    }
    float value;
    std::memcpy(&value, codes + 4 * i, sizeof value);
    return value;
  }

 private:
  static std::size_t blocks(std::size_t count) { return (count + kFp8Block - 1) / kFp8Block; }

  void put(DeviceArray<std::byte>& to, std::size_t stride, std::size_t panel_begin,
           std::size_t panel_end, const std::byte* from) const {
    const GuardedMemory::Access access(memory_);
    const std::size_t first = panel_begin * kPanel, last = std::min(n(), panel_end * kPanel);
    std::copy_n(from, (last - first) * stride, to.data() + first * stride);
  }

  GuardedMemory& memory_;
  DeviceArray<std::byte> codes_, fp4_scales_;
  DeviceArray<float> fp8_scales_;
};

// One output, as kernels/linear.h says.
float output(const float* x, const PublishedMatrix& weight, std::size_t row) {
  float total = 0;
  for (std::size_t begin = 0; begin < weight.k(); begin += weight.sum_block()) {
    float sum = 0;
    for (std::size_t i = begin; i < std::min(weight.k(), begin + weight.sum_block()); ++i) {
      sum = std::fma(x[i], weight.value(row, i), sum);
    }
    total += sum;
  }
  return total;
}

class GuardedBackend final : public AttentionBackend {
 public:
  GuardedBackend(GuardedMemory& memory, BackendKind kind, KvDtype dtype, Numerics numerics,
                 const ModelConfig& config)
      : memory_(memory), cpu_(1), backend_(make_backend(kind, dtype, numerics, config, cpu_)) {}

  int open() override { return backend_->open(); }
  void close(int slot) override { backend_->close(slot); }
  int fork(int from, std::int64_t length) override { return backend_->fork(from, length); }
  void attend(const AttentionStep& step) override {
    const GuardedMemory::Access access(memory_);
    backend_->attend(step);
  }
  void read_window(int slot, int layer, std::int64_t position, float* out) const override {
    backend_->read_window(slot, layer, position, out);
  }
  void read_entry(int slot, int layer, std::int64_t entry, float* out) const override {
    backend_->read_entry(slot, layer, entry, out);
  }
  std::size_t bytes_in_use() const override { return backend_->bytes_in_use(); }
  std::size_t sequence_bytes(std::int64_t length) const override {
    return backend_->sequence_bytes(length);
  }
  bool owners_agree() const override { return backend_->owners_agree(); }

 private:
  GuardedMemory& memory_;
  CpuExecutor cpu_;
  std::unique_ptr<AttentionBackend> backend_;
};

}  // namespace

GuardedMemory::GuardedMemory() {
  void* map =
      ::mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  begin_ = static_cast<std::byte*>(map);
}

GuardedMemory::~GuardedMemory() {
  ::munmap(begin_, kReserved);
}

void* GuardedMemory::allocate(std::size_t bytes) {
  const std::size_t size = whole_pages(bytes);
  in_use_ += bytes;
  if (const auto found = free_.find(size); found != free_.end()) {
    std::byte* memory = found->second;
    free_.erase(found);
    return memory;
  }
  if (used_ + size > kReserved) throw std::bad_alloc();
  used_ += size;
  return begin_ + used_ - size;
}

void GuardedMemory::release(void* memory, std::size_t bytes) noexcept {
  in_use_ -= bytes;
  free_.emplace(whole_pages(bytes), static_cast<std::byte*>(memory));
}

void GuardedMemory::protect(int protection) const {
  if (used_ > 0 && ::mprotect(begin_, used_, protection) != 0) {
    throw std::runtime_error("mprotect failed");
  }
}

GuardedMemory::Access::Access(GuardedMemory& memory) : memory_(memory) {
  if (memory_.open_++ == 0) memory_.protect(PROT_READ | PROT_WRITE);
}

GuardedMemory::Access::~Access() {
  if (--memory_.open_ == 0) memory_.protect(PROT_NONE);
}

void GuardedExecutor::to_device(void* to, const void* from, std::size_t bytes) {
  const GuardedMemory::Access access(memory_);
  std::memcpy(to, from, bytes);
}

void GuardedExecutor::to_host(void* to, const void* from, std::size_t bytes) {
  const GuardedMemory::Access access(memory_);
  std::memcpy(to, from, bytes);
}

void GuardedExecutor::copy(void* to, const void* from, std::size_t bytes) {
  const GuardedMemory::Access access(memory_);
  std::memcpy(to, from, bytes);
}

std::unique_ptr<Matrix> GuardedExecutor::make_matrix(Matrix::Format format, std::size_t n,
                                                     std::size_t k) {
  return std::make_unique<PublishedMatrix>(*this, format, n, k);
}

void GuardedExecutor::linear(std::span<const LinearParams> products) {
  const GuardedMemory::Access access(memory_);
  for (const LinearParams& p : products) {
    const auto& weight = static_cast<const PublishedMatrix&>(*p.weight);
    const std::size_t begin = p.row_range == nullptr ? 0 : static_cast<std::size_t>(p.row_range[0]);
    const std::size_t end =
        p.row_range == nullptr ? p.rows : static_cast<std::size_t>(p.row_range[1]);
    for (std::size_t r = begin; r < end; ++r) {
      for (std::size_t o = 0; o < weight.n(); ++o) {
        const float sum = output(p.x + r * p.x_stride, weight, o);
        p.out[r * p.out_stride + o] = p.round_bf16 ? round_bf16(sum) : sum;
      }
    }
  }
}

void GuardedExecutor::embed(const EmbedParams& params) {
  const GuardedMemory::Access access(memory_);
  cupel::embed(pool_, params);
}

void GuardedExecutor::gather_rows(const GatherRowsParams& params) {
  const GuardedMemory::Access access(memory_);
  cupel::gather_rows(pool_, params);
}

void GuardedExecutor::mark_not_finite(const MarkNotFiniteParams& params) {
  const GuardedMemory::Access access(memory_);
  cupel::mark_not_finite(pool_, params);
}

void GuardedExecutor::rms_norm(const RmsNormParams& params) {
  const GuardedMemory::Access access(memory_);
  cupel::rms_norm(pool_, params);
}

void GuardedExecutor::head_norm(const HeadNormParams& params) {
  const GuardedMemory::Access access(memory_);
  cupel::head_norm(pool_, params);
}

void GuardedExecutor::rope_table(const RopeTableParams& params) {
  const GuardedMemory::Access access(memory_);
  cupel::rope_table(pool_, params);
}

void GuardedExecutor::rope(const RopeParams& params) {
  const GuardedMemory::Access access(memory_);
  cupel::rope(pool_, params);
}

void GuardedExecutor::hadamard(const HadamardParams& params) {
  const GuardedMemory::Access access(memory_);
  cupel::hadamard(pool_, params);
}

void GuardedExecutor::scale(const ScaleParams& params) {
  const GuardedMemory::Access access(memory_);
  cupel::scale(pool_, params);
}

void GuardedExecutor::quantise_activation(const QuantiseActivationParams& params) {
  const GuardedMemory::Access access(memory_);
  cupel::quantise_activation(pool_, params);
}

void GuardedExecutor::swiglu(const SwigluParams& params) {
  const GuardedMemory::Access access(memory_);
  cupel::swiglu(pool_, params);
}

void GuardedExecutor::route(const RouteParams& params) {
  const GuardedMemory::Access access(memory_);
  cupel::route(pool_, params);
}

void GuardedExecutor::expert_batch(const ExpertBatchParams& params) {
  const GuardedMemory::Access access(memory_);
  cupel::expert_batch(pool_, params);
}

void GuardedExecutor::expert_sum(const ExpertSumParams& params) {
  const GuardedMemory::Access access(memory_);
  cupel::expert_sum(pool_, params);
}

void GuardedExecutor::compress_windows(const CompressWindowsParams& params) {
  const GuardedMemory::Access access(memory_);
  cupel::compress_windows(pool_, params);
}

void GuardedExecutor::hyper_mix(const HyperMixParams& params) {
  const GuardedMemory::Access access(memory_);
  cupel::hyper_mix(pool_, params);
}

void GuardedExecutor::hyper_join(const HyperJoinParams& params) {
  const GuardedMemory::Access access(memory_);
  cupel::hyper_join(pool_, params);
}

void GuardedExecutor::hyper_head(const HyperHeadParams& params) {
  const GuardedMemory::Access access(memory_);
  cupel::hyper_head(pool_, params);
}

std::unique_ptr<AttentionBackend> make_guarded_backend(BackendKind kind, KvDtype dtype,
                                                       Numerics numerics, const ModelConfig& config,
                                                       Executor& executor) {
  return std::make_unique<GuardedBackend>(dynamic_cast<GuardedExecutor&>(executor).memory(), kind,
                                          dtype, numerics, config);
}

}  // namespace cupel::test

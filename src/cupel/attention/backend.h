// An attention backend: how keys are stored, in which order a query reads them, and with which
// arithmetic (DESIGN section 4).
//
// The model hands over queries, latent rows and compressed rows as it computed them; everything
// about storage is the backend's. A row is brought into its stored form before any use, rows of the
// current step included, so that the result does not depend on where a prompt was cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "cupel/checkpoint/config.h"
#include "cupel/kernels/executor.h"
#include "cupel/kernels/numerics.h"

namespace cupel {

enum class BackendKind { kReference, kPacked, kUnified };
enum class KvDtype { kAuto, kBf16, kFp8E4m3 };

// Accepts the SGLang names too: "triton" is packed, "unified_kv_triton" is unified. Throws
// InputError for any other name.
BackendKind parse_backend(std::string_view name);
std::string_view backend_name(BackendKind kind);
// "auto", "bf16" or "fp8_e4m3"; throws InputError otherwise.
KvDtype parse_kv_dtype(std::string_view name);
std::string_view kv_dtype_name(KvDtype dtype);

// Consecutive tokens of one sequence within a step.
struct AttentionSegment {
  int slot = 0;               // of the sequence, from open()
  std::int64_t start = 0;     // position of the first token
  std::size_t rows = 0;       // number of tokens
  std::size_t first_row = 0;  // of the step's tensors
};

// One layer of one step. Addresses are those of the executor's device, segments are on the host.
// H = heads, I = index heads. A segment completes the entries
// [start / ratio, (start + rows) / ratio); the completed rows of all segments stand one after the
// other in `entries` and `index_keys`.
struct AttentionStep {
  int layer = 0;
  std::span<const AttentionSegment> segments;
  const float* q = nullptr;              // [rows, H, 512], normed and rotated
  const float* kv = nullptr;             // [rows, 512], normed and rotated, not quantised
  const float* entries = nullptr;        // [completed, 512], normed and rotated, not quantised
  const float* index_keys = nullptr;     // [completed, 128], after the Hadamard transform
  const float* index_q = nullptr;        // [rows, I, 128], after the Hadamard transform
  const float* index_weights = nullptr;  // [rows, I]
  const float* sink = nullptr;           // [H]
  float* out = nullptr;                  // [rows, H, 512], not yet rotated back
  // Optional: the entries each row attends to, ascending, -1 beyond; [rows, index_topk].
  std::int32_t* selection = nullptr;
};

class AttentionBackend {
 public:
  virtual ~AttentionBackend() = default;

  // A fresh, empty sequence; the lowest free slot.
  virtual int open() = 0;
  virtual void close(int slot) = 0;
  // A sequence in the state of `from`, which has `length` tokens. Full pages are shared.
  virtual int fork(int from, std::int64_t length) = 0;

  // Stores the step's rows and attends. Segments are of different slots.
  virtual void attend(const AttentionStep& step) = 0;

  // A stored row as attention reads it, [512]: of a position within the window, or of an entry.
  virtual void read_window(int slot, int layer, std::int64_t position, float* out) const = 0;
  virtual void read_entry(int slot, int layer, std::int64_t entry, float* out) const = 0;

  // Bytes held by pages in use; a shared page counts once.
  virtual std::size_t bytes_in_use() const = 0;
  // Bytes of a sequence of that many tokens which shares nothing.
  virtual std::size_t sequence_bytes(std::int64_t length) const = 0;
  // Whether every page is free, owned once, or shared by exactly the sequences that hold it.
  virtual bool owners_agree() const = 0;
};

// Throws InputError where kind and dtype do not go together (packed is fp8 only, reference keeps
// fp32 rows on the fp8 grid) or the configuration has sizes the layouts cannot hold.
void check_backend(BackendKind kind, KvDtype dtype, const ModelConfig& config);

// The backend of that kind for the device of the executor, which must outlive it. Throws as
// check_backend does, and where there is none for the device.
std::unique_ptr<AttentionBackend> make_backend(BackendKind kind, KvDtype dtype, Numerics numerics,
                                               const ModelConfig& config, Executor& executor);
using BackendFactory = std::function<decltype(make_backend)>;

}  // namespace cupel

// What grows with the context: choosing entries, decoding and attending, for one token of a ratio-4
// and of a ratio-128 layer, over a cache filled with random keys.
#include <functional>
#include <numeric>

#include "benchmarks.h"
#include "measure.h"
#include "random_matrix.h"
#include <fmt/format.h>

#include "cupel/attention/attend_row.h"
#include "cupel/attention/index_keys.h"
#include "cupel/attention/kv_codec.h"
#include "cupel/kernels/isa.h"

namespace cupel::bench {
namespace {

constexpr std::size_t kHeads = 64, kIndexHeads = 64, kTopk = 512, kWindow = 128;
constexpr double kIndexKeyBytes = 132, kRowBytes = 1024;  // of the unified layout

// Attends over the window and these entries of a bf16 cache, each row decoded first.
class Attention {
 public:
  explicit Attention(std::size_t entries) : stored_((kWindow + entries) * kRowBytes_) {
    const auto values = random_floats(kKvDim);
    for (std::size_t r = 0; r < stored_.size() / kRowBytes_; ++r) {
      encode_kv_bf16(values.data(), stored_.data() + r * kRowBytes_);
    }
  }

  void run(std::span<const std::int32_t> entries) {
    rows_.resize((kWindow + entries.size()) * kKvDim);
    keys_.clear();
    for (std::size_t i = 0; i < kWindow + entries.size(); ++i) {
      const std::size_t row =
          i < kWindow ? i : kWindow + static_cast<std::size_t>(entries[i - kWindow]);
      decode_kv_bf16(stored_.data() + row * kRowBytes_, rows_.data() + i * kKvDim);
      keys_.push_back(rows_.data() + i * kKvDim);
    }
    attend_row_unified({.q = q_.data(),
                        .keys = keys_,
                        .sink = sink_.data(),
                        .heads = kHeads,
                        .scale = 0.04f,
                        .round_bf16 = true,
                        .out = out_.data(),
                        .scratch = &scratch_});
  }

 private:
  static constexpr std::size_t kRowBytes_ = kKvDim * 2;
  std::vector<std::byte> stored_;
  std::vector<float> rows_, scratch_;
  std::vector<float> q_ = random_floats(kHeads * kKvDim), sink_ = random_floats(kHeads);
  std::vector<float> out_ = std::vector<float>(kHeads * kKvDim);
  std::vector<const float*> keys_;
};

}  // namespace

void context(const Settings& s) {
  fmt::print("one token, one thread, {}, unified layout; ratios to the first row\n", active_isa());
  fmt::print("{:>8} | {:>10} {:>7} {:>9} | {:>10} {:>7} {:>9}\n", "context", "ratio 4 ms", "time",
             "bytes", "128 ms", "time", "bytes");
  const auto q = random_floats(kIndexHeads * kIndexDim), weights = random_floats(kIndexHeads);
  const auto pool_of_keys = random_floats(4096 * kIndexDim);
  double first[4] = {};
  for (std::size_t tokens = 1024; tokens <= 65536; tokens *= 2) {
    const std::size_t sparse = tokens / 4, dense = tokens / 128;
    const auto keys = make_index_keys(IndexForm::kFp8, kIndexHeads);
    keys->open(0);
    keys->reserve(0, sparse);
    for (std::size_t e = 0; e < sparse; ++e) {
      keys->store(0, e, pool_of_keys.data() + e % 4096 * kIndexDim);
    }
    Attention chosen(sparse), all(dense);
    std::vector<std::int32_t> every(dense);
    std::iota(every.begin(), every.end(), 0);
    const std::function<void()> runs[] = {
        [&] { chosen.run(select_entries(*keys, 0, sparse, kTopk, q.data(), weights.data())); },
        [&] { all.run(every); }};
    const auto times = alternate(runs, s.repeats);
    const double scored = sparse > kTopk ? static_cast<double>(sparse) * kIndexKeyBytes : 0;
    const double now[4] = {
        times[0], scored + static_cast<double>(kWindow + std::min(sparse, kTopk)) * kRowBytes,
        times[1], static_cast<double>(kWindow + dense) * kRowBytes};
    if (tokens == 1024) std::copy_n(now, 4, first);
    fmt::print("{:8} | {:10.3f} {:6.2f}x {:8.2f}x | {:10.3f} {:6.2f}x {:8.2f}x\n", tokens,
               now[0] * 1e3, now[0] / first[0], now[1] / first[1], now[2] * 1e3, now[2] / first[2],
               now[3] / first[3]);
  }
}

}  // namespace cupel::bench

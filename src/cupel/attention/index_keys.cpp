#include "cupel/attention/index_keys.h"

#include <algorithm>
#include <numeric>

#include "cupel/attention/index_score.h"
#include "cupel/attention/kv_codec.h"
#include "cupel/attention/paged_index_keys.h"
#include "cupel/kernels/router.h"

namespace cupel {
namespace {

std::size_t at(int slot) {
  return static_cast<std::size_t>(slot);
}

// Rows of fp32: exact keys, or keys on the FP4 grid.
class RowIndexKeys final : public IndexKeys {
 public:
  RowIndexKeys(std::size_t heads, bool fp4) : heads_(heads), fp4_(fp4) {}

  void open(int slot) override {
    if (rows_.size() <= at(slot)) rows_.resize(at(slot) + 1);
    rows_[at(slot)].clear();
  }
  void close(int slot) override { rows_[at(slot)] = {}; }
  void copy(int from, int to) override { rows_[at(to)] = rows_[at(from)]; }
  void reserve(int slot, std::size_t count) override {
    auto& rows = rows_[at(slot)];
    rows.resize(std::max(rows.size(), count * kIndexDim));
  }
  void store(int slot, std::size_t entry, const float* key) override {
    float* row = rows_[at(slot)].data() + entry * kIndexDim;
    if (fp4_) {
      fake_quantise_index_fp4(key, row);
    } else {
      std::copy_n(key, kIndexDim, row);
    }
  }
  void score(int slot, std::size_t count, const float* q, const float* weights,
             float* scores) const override {
    std::vector<float> grid(q, q + heads_ * kIndexDim);
    if (fp4_) {
      for (std::size_t h = 0; h < heads_; ++h) {
        fake_quantise_index_fp4(q + h * kIndexDim, grid.data() + h * kIndexDim);
      }
    }
    const float* rows = rows_[at(slot)].data();
    for (std::size_t j = 0; j < count; ++j) {
      const float* key = rows + j * kIndexDim;
      scores[j] = fp4_ ? index_score_bf16(grid.data(), key, weights, heads_)
                       : index_score_f32(grid.data(), key, weights, heads_);
    }
  }
  std::size_t bytes_in_use() const override {
    return std::accumulate(
        rows_.begin(), rows_.end(), std::size_t{0},
        [](std::size_t sum, const auto& r) { return sum + r.size() * sizeof(float); });
  }

 private:
  std::size_t heads_;
  bool fp4_;
  std::vector<std::vector<float>> rows_;  // by slot, [entries, 128]
};

}  // namespace

std::unique_ptr<IndexKeys> make_index_keys(IndexForm form, std::size_t heads) {
  if (form == IndexForm::kFp8) return std::make_unique<PagedIndexKeys>(heads);
  return std::make_unique<RowIndexKeys>(heads, form == IndexForm::kFp4);
}

std::vector<std::int32_t> select_entries(const IndexKeys& keys, int slot, std::size_t visible,
                                         std::size_t topk, const float* q, const float* weights) {
  std::vector<std::int32_t> chosen(std::min(visible, topk));
  if (visible <= topk) {
    std::iota(chosen.begin(), chosen.end(), 0);
    return chosen;
  }
  std::vector<float> scores(visible);
  keys.score(slot, visible, q, weights, scores.data());
  select_topk(scores, topk, chosen.data());
  return chosen;
}

}  // namespace cupel

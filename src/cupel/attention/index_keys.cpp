#include "cupel/attention/index_keys.h"

#include <algorithm>
#include <numeric>

#include "cupel/attention/index_score.h"
#include "cupel/attention/kv_codec.h"
#include "cupel/attention/page_pool.h"
#include "cupel/attention/paged_index_keys.h"
#include "cupel/kernels/router.h"

namespace cupel {
namespace {

std::size_t at(int slot) {
  return static_cast<std::size_t>(slot);
}

// Rows of fp32, 64 a page: exact keys, or keys on the FP4 grid.
class RowIndexKeys final : public IndexKeys {
 public:
  RowIndexKeys(std::size_t heads, bool fp4)
      : heads_(heads), fp4_(fp4), pool_(kPerPage * kIndexDim * sizeof(float)) {}

  void open(int slot) override {
    if (tables_.size() <= at(slot)) tables_.resize(at(slot) + 1);
  }
  void close(int slot) override { tables_[at(slot)].release(pool_); }
  void fork(int from, int to, std::size_t entries) override {
    tables_[at(to)].fork_from(pool_, tables_[at(from)], entries, kPerPage);
  }
  void reserve(int slot, std::size_t count) override {
    tables_[at(slot)].reserve(pool_, count, kPerPage);
  }
  void store(int slot, std::size_t entry, const float* key) override {
    auto* row = reinterpret_cast<float*>(pool_.page(tables_[at(slot)].page_of(entry, kPerPage))) +
                entry % kPerPage * kIndexDim;
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
    const PageTable& table = tables_[at(slot)];
    static_assert(kPerPage % kIndexKeyTile == 0);
    for (std::size_t j = 0; j < count; j += kIndexKeyTile) {
      const IndexScoreParams tile{
          .q = grid.data(),
          .weights = weights,
          .heads = heads_,
          .keys = reinterpret_cast<const float*>(pool_.page(table.page_of(j, kPerPage))) +
                  j % kPerPage * kIndexDim,
          .count = std::min(kIndexKeyTile, count - j),
          .scores = scores + j};
      fp4_ ? index_scores_bf16(tile) : index_scores_f32(tile);
    }
  }
  std::size_t bytes_in_use() const override { return pool_.pages_in_use() * pool_.page_bytes(); }
  std::size_t sequence_bytes(std::size_t entries) const override {
    return pages_for(entries, kPerPage) * pool_.page_bytes();
  }
  bool owners_agree() const override {
    std::vector<int> counted;
    for (const PageTable& table : tables_) table.count_owners(counted);
    return pool_.owners_agree(counted);
  }

 private:
  static constexpr std::size_t kPerPage = 64;

  std::size_t heads_;
  bool fp4_;
  PagePool pool_;
  std::vector<PageTable> tables_;  // by slot
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

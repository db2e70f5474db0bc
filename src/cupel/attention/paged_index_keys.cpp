#include "cupel/attention/paged_index_keys.h"

#include <algorithm>
#include <cstring>

#include "cupel/attention/index_score.h"
#include "cupel/attention/kv_codec.h"

namespace cupel {
namespace {

std::size_t at(int slot) {
  return static_cast<std::size_t>(slot);
}

}  // namespace

PagedIndexKeys::PagedIndexKeys(std::size_t heads)
    : heads_(heads), pool_(kPerPage * (kIndexDim + sizeof(float))) {}

void PagedIndexKeys::open(int slot) {
  if (tables_.size() <= at(slot)) tables_.resize(at(slot) + 1);
}

void PagedIndexKeys::close(int slot) {
  tables_[at(slot)].release(pool_);
}

void PagedIndexKeys::fork(int from, int to, std::size_t entries) {
  tables_[at(to)].fork_from(pool_, tables_[at(from)], entries, kPerPage);
}

void PagedIndexKeys::reserve(int slot, std::size_t count) {
  tables_[at(slot)].reserve(pool_, count, kPerPage);
}

void PagedIndexKeys::store(int slot, std::size_t entry, const float* key) {
  std::byte* page = pool_.page(tables_[at(slot)].page_of(entry, kPerPage));
  const std::size_t i = entry % kPerPage;
  float scale = 0;
  encode_index_fp8(key, reinterpret_cast<std::uint8_t*>(page) + i * kIndexDim, &scale);
  std::memcpy(page + kPerPage * kIndexDim + i * sizeof scale, &scale, sizeof scale);
}

void PagedIndexKeys::score(int slot, std::size_t count, const float* q, const float* weights,
                           float* scores) const {
  std::vector<float> grid(heads_ * kIndexDim), scaled(heads_);
  for (std::size_t h = 0; h < heads_; ++h) {
    std::uint8_t codes[kIndexDim];
    float scale = 0;
    encode_index_fp8(q + h * kIndexDim, codes, &scale);
    decode_index_fp8(codes, grid.data() + h * kIndexDim);
    scaled[h] = weights[h] * scale;
  }
  static_assert(kPerPage % kIndexKeyTile == 0);
  alignas(64) float keys[kIndexKeyTile * kIndexDim];
  for (std::size_t j = 0; j < count; j += kIndexKeyTile) {
    const std::size_t first = j % kPerPage, tile = std::min(kIndexKeyTile, count - j);
    const std::byte* stored = page(slot, j);
    for (std::size_t i = 0; i < tile; ++i) {
      decode_index_fp8(reinterpret_cast<const std::uint8_t*>(stored) + (first + i) * kIndexDim,
                       keys + i * kIndexDim);
    }
    index_scores_f32({.q = grid.data(),
                      .weights = scaled.data(),
                      .heads = heads_,
                      .keys = keys,
                      .count = tile,
                      .scores = scores + j});
    float scales[kIndexKeyTile];
    std::memcpy(scales, stored + kPerPage * kIndexDim + first * sizeof(float),
                tile * sizeof(float));
    for (std::size_t i = 0; i < tile; ++i) scores[j + i] *= scales[i];
  }
}

std::size_t PagedIndexKeys::bytes_in_use() const {
  return pool_.pages_in_use() * pool_.page_bytes();
}

std::size_t PagedIndexKeys::sequence_bytes(std::size_t entries) const {
  return pages_for(entries, kPerPage) * pool_.page_bytes();
}

bool PagedIndexKeys::owners_agree() const {
  std::vector<int> counted;
  for (const PageTable& table : tables_) table.count_owners(counted);
  return pool_.owners_agree(counted);
}

const std::byte* PagedIndexKeys::page(int slot, std::size_t entry) const {
  return pool_.page(tables_[at(slot)].page_of(entry, kPerPage));
}

}  // namespace cupel

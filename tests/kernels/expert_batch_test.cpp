#include "cupel/kernels/expert_batch.h"

#include <algorithm>
#include <set>
#include <vector>

#include "support/random.h"
#include "support/same_bits.h"
#include <gtest/gtest.h>

#include "cupel/formats/bf16.h"

namespace cupel {
namespace {

struct Batch {
  std::size_t rows, k, experts, shared_rows;
  std::vector<std::int32_t> chosen, offsets, source_rows, batch_rows;
  std::vector<float> weights, batch_weights;

  Batch(std::uint64_t seed, std::size_t rows_in, std::size_t k_in, std::size_t experts_in)
      : rows(rows_in),
        k(k_in),
        experts(experts_in),
        shared_rows(rows),
        offsets(experts + 1),
        source_rows(rows * k),
        batch_rows(rows * k),
        batch_weights(rows * k + shared_rows) {
    test::Random random(seed);
    for (std::size_t r = 0; r < rows; ++r) {
      std::set<std::int32_t> row;
      while (row.size() < k) row.insert(static_cast<std::int32_t>(random.below(experts)));
      chosen.insert(chosen.end(), row.begin(), row.end());
    }
    weights = random.normals(rows * k);
    ThreadPool pool(2);
    expert_batch(pool, {.chosen = chosen.data(),
                        .weights = weights.data(),
                        .rows = rows,
                        .k = k,
                        .experts = experts,
                        .shared_rows = shared_rows,
                        .offsets = offsets.data(),
                        .source_rows = source_rows.data(),
                        .batch_weights = batch_weights.data(),
                        .batch_rows = batch_rows.data()});
  }
};

TEST(ExpertBatch, OrdersByExpertThenByRowAndLosesNothing) {
  for (const std::size_t rows : {0, 1, 2, 37}) {
    const Batch b(1 + rows, rows, 3, 11);
    std::vector<std::pair<std::int32_t, std::int32_t>> expected;
    for (std::size_t i = 0; i < rows * b.k; ++i) {
      expected.emplace_back(b.chosen[i], static_cast<std::int32_t>(i / b.k));
    }
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(b.offsets.front(), 0);
    EXPECT_EQ(b.offsets.back(), static_cast<std::int32_t>(rows * b.k));
    for (std::size_t e = 0; e < b.experts; ++e) {
      for (auto row = static_cast<std::size_t>(b.offsets[e]);
           row < static_cast<std::size_t>(b.offsets[e + 1]); ++row) {
        EXPECT_EQ(expected[row], std::pair(static_cast<std::int32_t>(e), b.source_rows[row]));
      }
    }
    for (std::size_t i = 0; i < rows * b.k; ++i) {
      const auto row = static_cast<std::size_t>(b.batch_rows[i]);
      EXPECT_EQ(expected.at(row), std::pair(b.chosen[i], static_cast<std::int32_t>(i / b.k)));
      EXPECT_EQ(b.batch_weights[row], b.weights[i]);
    }
    for (std::size_t i = rows * b.k; i < b.batch_weights.size(); ++i) {
      EXPECT_EQ(b.batch_weights[i], 1.0f);
    }
  }
}

TEST(ExpertBatch, SumsByAscendingExpertThenTheSharedOnes) {
  constexpr std::size_t kWidth = 5, kShared = 2;
  const Batch b(7, 9, 3, 4);
  test::Random random(8);
  const std::vector<float> y = random.normals((b.rows * b.k + kShared * b.rows) * kWidth, 100);
  for (const bool round : {false, true}) {
    std::vector<float> out(b.rows * kWidth), expected(b.rows * kWidth);
    for (std::size_t r = 0; r < b.rows; ++r) {
      std::vector<std::pair<std::int32_t, std::size_t>> order;
      for (std::size_t i = r * b.k; i < (r + 1) * b.k; ++i) {
        order.emplace_back(b.chosen[i], static_cast<std::size_t>(b.batch_rows[i]));
      }
      std::sort(order.begin(), order.end());
      for (std::size_t s = 0; s < kShared; ++s) {
        order.emplace_back(static_cast<std::int32_t>(b.experts), b.rows * b.k + s * b.rows + r);
      }
      for (std::size_t c = 0; c < kWidth; ++c) {
        float sum = 0;
        for (const auto& [expert, row] : order) sum += y[row * kWidth + c];
        expected[r * kWidth + c] = round ? round_bf16(sum) : sum;
      }
    }
    ThreadPool pool(2);
    expert_sum(pool, {.y = y.data(),
                      .batch_rows = b.batch_rows.data(),
                      .rows = b.rows,
                      .k = b.k,
                      .shared = kShared,
                      .width = kWidth,
                      .out = out.data(),
                      .round_bf16 = round});
    EXPECT_TRUE(test::same_bits(out, expected));
  }
}

}  // namespace
}  // namespace cupel

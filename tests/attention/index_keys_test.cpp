#include "cupel/attention/index_keys.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "support/isa_scope.h"
#include "support/random.h"
#include "support/same_bits.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/attention/index_score.h"
#include "cupel/attention/kv_codec.h"
#include "cupel/formats/bf16.h"
#include "cupel/formats/quantise.h"

namespace cupel {
namespace {

using test::available_isas;
using test::IsaScope;
using test::same_bits;
using testing::ElementsAre;
using Floats = std::vector<float>;

struct Problem {
  std::size_t heads, count;
  Floats q, keys, weights;

  Problem(std::size_t heads_in, std::size_t count_in) : heads(heads_in), count(count_in) {
    test::Random random(141);
    q = random.bf16_normals(heads * kIndexDim);
    keys = random.bf16_normals(count * kIndexDim);
    weights = random.bf16_normals(heads, 0.1);
  }

  Floats scores(IndexForm form) const {
    const auto stored = make_index_keys(form, heads);
    stored->open(0);
    stored->reserve(0, count);
    for (std::size_t j = 0; j < count; ++j) stored->store(0, j, keys.data() + j * kIndexDim);
    Floats out(count);
    stored->score(0, count, q.data(), weights.data(), out.data());
    return out;
  }
};

// Heads in whole fours and not; keys on one page, a full one and several.
std::vector<Problem> problems() {
  std::vector<Problem> list;
  for (const std::size_t heads : {1, 3, 4, 6, 64}) {
    for (const std::size_t count : {1, 64, 150}) list.emplace_back(heads, count);
  }
  return list;
}

struct ExactScore {
  double value = 0, magnitude = 0;
};

// sum_h relu(q_h . k) w_h and the sum of the magnitudes of all terms.
ExactScore exact_score(const double* q, const double* key, const Floats& weights) {
  ExactScore score;
  for (std::size_t h = 0; h < weights.size(); ++h) {
    double dot = 0, magnitude = 0;
    for (std::size_t i = 0; i < kIndexDim; ++i) {
      dot += q[h * kIndexDim + i] * key[i];
      magnitude += std::fabs(q[h * kIndexDim + i] * key[i]);
    }
    score.value += std::fmax(dot, 0) * weights[h];
    score.magnitude += magnitude * std::fabs(weights[h]);
  }
  return score;
}

void expect_close(const Problem& p, IndexForm form, const std::vector<double>& q,
                  const std::vector<double>& keys) {
  // A dot has 8 products a lane and 4 additions; then weights, scales and the sum over heads.
  const double roundings = 8 + 4 + 4 + static_cast<double>(p.heads);
  for (const Isa isa : available_isas()) {
    const IsaScope scope(isa);
    const Floats out = p.scores(form);
    for (std::size_t j = 0; j < p.count; ++j) {
      const auto exact = exact_score(q.data(), keys.data() + j * kIndexDim, p.weights);
      ASSERT_NEAR(out[j], exact.value, roundings * 0x1p-24 * exact.magnitude)
          << active_isa() << " heads " << p.heads << " key " << j;
    }
  }
}

std::vector<double> as_double(const Floats& x) {
  return {x.begin(), x.end()};
}

TEST(IndexKeys, Fp32ScoresAreCloseToDouble) {
  for (const Problem& p : problems()) {
    expect_close(p, IndexForm::kF32, as_double(p.q), as_double(p.keys));
  }
}

std::vector<double> on_fp8_grid(const Floats& x) {
  std::vector<double> out;
  for (std::size_t row = 0; row < x.size(); row += kIndexDim) {
    std::vector<std::uint8_t> codes(kIndexDim);
    const double scale = encode_index_key(std::span(x).subspan(row, kIndexDim), codes);
    for (const auto code : codes) out.push_back(e4m3_to_float(code) * scale);
  }
  return out;
}

TEST(IndexKeys, Fp8ScoresAreCloseToDoubleOnTheStoredValues) {
  for (const Problem& p : problems()) {
    expect_close(p, IndexForm::kFp8, on_fp8_grid(p.q), on_fp8_grid(p.keys));
  }
}

// On the FP4 grid the dots are exact in fp32, so the bf16 rounding points of spec 3.8.6 alone
// decide the bits.
TEST(IndexKeys, Fp4ScoresHaveTheRoundingPointsOfTheReference) {
  for (const Problem& p : problems()) {
    Floats q = p.q, keys = p.keys, expected;
    fake_quantise_indexer(q);
    fake_quantise_indexer(keys);
    for (std::size_t j = 0; j < p.count; ++j) {
      float total = 0;
      for (std::size_t h = 0; h < p.heads; ++h) {
        double dot = 0;
        for (std::size_t i = 0; i < kIndexDim; ++i) {
          dot += double{q[h * kIndexDim + i]} * keys[j * kIndexDim + i];
        }
        ASSERT_EQ(static_cast<float>(dot), dot);
        const float relu = std::fmax(round_bf16(static_cast<float>(dot)), 0.0f);
        total += round_bf16(relu * p.weights[h]);
      }
      expected.push_back(round_bf16(total));
    }
    for (const Isa isa : available_isas()) {
      const IsaScope scope(isa);
      EXPECT_TRUE(same_bits(p.scores(IndexForm::kFp4), expected)) << active_isa();
    }
  }
}

// Every count of heads and keys: tiles in part, and a key's score in any company.
TEST(IndexScore, DependsNeitherOnTheInstructionSetNorOnTheOtherKeys) {
  for (std::size_t heads = 1; heads <= 9; ++heads) {
    const Problem p(heads, kIndexKeyTile);
    const auto scores = [&](auto function, std::size_t first, std::size_t count) {
      Floats out(count);
      function({.q = p.q.data(),
                .weights = p.weights.data(),
                .heads = heads,
                .keys = p.keys.data() + first * kIndexDim,
                .count = count,
                .scores = out.data()});
      return out;
    };
    for (const auto function : {&index_scores_f32, &index_scores_bf16}) {
      Floats alone;
      for (std::size_t j = 0; j < p.count; ++j) alone.push_back(scores(function, j, 1)[0]);
      for (const Isa isa : available_isas()) {
        const IsaScope scope(isa);
        for (std::size_t count = 1; count <= p.count; ++count) {
          const std::size_t first = p.count - count;
          EXPECT_TRUE(same_bits(scores(function, first, count),
                                std::span<const float>(alone).subspan(first)))
              << active_isa() << " heads " << heads << " keys " << count;
        }
      }
    }
  }
}

class Slots : public testing::TestWithParam<IndexForm> {};

TEST_P(Slots, AreApartAndCopiesEqual) {
  const Problem p(4, 150);
  const Floats expected = p.scores(GetParam());
  const auto keys = make_index_keys(GetParam(), 4);
  const std::size_t empty = keys->bytes_in_use();
  const auto fill = [&](int slot, std::size_t first_key) {
    keys->open(slot);
    for (std::size_t j = 0; j < p.count; ++j) {
      keys->reserve(slot, j + 1);  // grows one by one
      keys->store(slot, j, p.keys.data() + (first_key + j) % p.count * kIndexDim);
    }
  };
  const auto scores = [&](int slot) {
    Floats out(p.count);
    keys->score(slot, p.count, p.q.data(), p.weights.data(), out.data());
    return out;
  };
  fill(0, 0);
  fill(1, 1);
  keys->open(2);
  keys->fork(0, 2, p.count);
  EXPECT_TRUE(same_bits(scores(0), expected));
  EXPECT_TRUE(same_bits(scores(2), expected));
  EXPECT_TRUE(same_bits(std::span<const float>(scores(1)).first(149),
                        std::span<const float>(expected).last(149)));
  // Full pages are shared, the part-used last one is not: both go on by themselves.
  EXPECT_EQ(keys->bytes_in_use() - empty,
            2 * keys->sequence_bytes(p.count) + keys->sequence_bytes(1));
  EXPECT_TRUE(keys->owners_agree());
  keys->store(0, 149, p.keys.data());
  EXPECT_TRUE(same_bits(scores(2), expected));
  EXPECT_FALSE(same_bits(scores(0), expected));
  for (const int slot : {1, 0, 2}) keys->close(slot);
  EXPECT_EQ(keys->bytes_in_use(), empty);
  fill(0, 0);
  EXPECT_TRUE(same_bits(scores(0), expected));
}

INSTANTIATE_TEST_SUITE_P(Forms, Slots,
                         testing::Values(IndexForm::kFp4, IndexForm::kFp8, IndexForm::kF32));

// Scores as given.
class GivenScores final : public IndexKeys {
 public:
  explicit GivenScores(Floats scores) : scores_(std::move(scores)) {}
  void open(int) override {}
  void close(int) override {}
  void fork(int, int, std::size_t) override {}
  void reserve(int, std::size_t) override {}
  void store(int, std::size_t, const float*) override {}
  void score(int, std::size_t count, const float*, const float*, float* out) const override {
    ASSERT_LE(count, scores_.size());
    std::copy_n(scores_.data(), count, out);
  }
  std::size_t bytes_in_use() const override { return 0; }
  std::size_t sequence_bytes(std::size_t) const override { return 0; }
  bool owners_agree() const override { return true; }

 private:
  Floats scores_;
};

std::vector<std::int32_t> select(const Floats& scores, std::size_t visible, std::size_t topk) {
  return select_entries(GivenScores(scores), 0, visible, topk, nullptr, nullptr);
}

TEST(SelectEntries, TakesAllIfTheyAreNotMoreThanTopk) {
  EXPECT_THAT(select({}, 0, 4), ElementsAre());
  EXPECT_THAT(select({1, 9, 1}, 3, 4), ElementsAre(0, 1, 2));
  EXPECT_THAT(select({1, 9, 1, 5}, 4, 4), ElementsAre(0, 1, 2, 3));
}

TEST(SelectEntries, TakesTheBestVisibleTiesToTheLowest) {
  EXPECT_THAT(select({1, 9, 1, 5, 7}, 5, 3), ElementsAre(1, 3, 4));
  EXPECT_THAT(select({2, 2, 2, 2, 2}, 5, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(select({2, 3, 2, 2, 3}, 5, 3), ElementsAre(0, 1, 4));
  EXPECT_THAT(select({1, 2, 3, 99}, 3, 2), ElementsAre(1, 2));  // entry 3 is not visible yet
  EXPECT_THAT(select({std::nanf(""), 2, -3}, 3, 2), ElementsAre(1, 2));
}

// Equal keys have equal scores in every form, wherever they lie.
TEST(SelectEntries, EqualKeysTie) {
  Problem p(4, 130);
  for (std::size_t j = 1; j < p.count; ++j) {
    std::copy_n(p.keys.data(), kIndexDim, p.keys.data() + j * kIndexDim);
  }
  for (const IndexForm form : {IndexForm::kFp4, IndexForm::kFp8, IndexForm::kF32}) {
    const Floats scores = p.scores(form);
    EXPECT_THAT(select(scores, p.count, 3), ElementsAre(0, 1, 2));
  }
}

}  // namespace
}  // namespace cupel

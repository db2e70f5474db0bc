#include "cupel/kernels/gated_pool.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/isa_scope.h"
#include "support/random.h"
#include "support/same_bits.h"
#include <gtest/gtest.h>

#include "cupel/kernels/exp.h"

namespace cupel {
namespace {

using test::available_isas;
using test::IsaScope;
using test::same_bits;

struct Rows {
  std::vector<std::vector<float>> values, gates;

  Rows(test::Random& random, std::size_t count, std::size_t width, double gate_sigma) {
    for (std::size_t t = 0; t < count; ++t) {
      values.push_back(random.normals(width));
      gates.push_back(random.normals(width, gate_sigma));
    }
  }

  std::vector<float> pool(std::size_t first = 0) const {
    std::vector<const float*> v, g;
    for (std::size_t t = 0; t < values.size(); ++t) {
      v.push_back(t < first ? nullptr : values[t].data());
      g.push_back(t < first ? nullptr : gates[t].data());
    }
    std::vector<float> out(values[0].size());
    gated_pool({.values = v, .gates = g, .width = out.size(), .out = out.data()});
    return out;
  }
};

// The softmax weights have an error of a few ulp each, the sum one rounding a row.
TEST(GatedPool, IsCloseToDoubleWithAnyNumberOfNullRows) {
  test::Random random(51);
  for (const std::size_t count : {1, 2, 8, 128}) {
    for (const double sigma : {0.1, 3.0, 60.0}) {
      const Rows rows(random, count, 48, sigma);
      for (const std::size_t first : {std::size_t{0}, count / 2}) {
        for (const Isa isa : available_isas()) {
          const IsaScope scope(isa);
          const std::vector<float> out = rows.pool(first);
          for (std::size_t c = 0; c < out.size(); ++c) {
            double top = -1e300, total = 0, sum = 0, magnitude = 0;
            for (std::size_t t = first; t < count; ++t) {
              top = std::max<double>(top, rows.gates[t][c]);
            }
            for (std::size_t t = first; t < count; ++t) {
              const double weight = std::exp(rows.gates[t][c] - top);
              total += weight;
              sum += weight * rows.values[t][c];
              magnitude += weight * std::fabs(rows.values[t][c]);
            }
            // A difference of gates has an error of 2^-24 of itself; beyond 90 the weight is 0.
            const double bound = (90 + 8 + 2 * static_cast<double>(count)) * 0x1p-24;
            ASSERT_NEAR(out[c], sum / total, bound * magnitude / total)
                << active_isa() << " rows " << count << " from " << first;
          }
        }
      }
    }
  }
}

TEST(GatedPool, AddsRowsInAscendingOrder) {
  test::Random random(52);
  const Rows rows(random, 8, 32, 2);
  std::vector<float> expected(32);
  for (std::size_t c = 0; c < expected.size(); ++c) {
    float top = rows.gates[0][c], total = 0, sum = 0;
    for (const auto& gate : rows.gates) top = std::max(top, gate[c]);
    for (const auto& gate : rows.gates) total += exp_f32(gate[c] - top);
    for (std::size_t t = 0; t < 8; ++t) {
      sum = std::fma(exp_f32(rows.gates[t][c] - top) / total, rows.values[t][c], sum);
    }
    expected[c] = sum;
  }
  for (const Isa isa : available_isas()) {
    const IsaScope scope(isa);
    EXPECT_TRUE(same_bits(rows.pool(), expected)) << active_isa();
  }
}

TEST(GatedPool, OneRowAloneIsItsValue) {
  test::Random random(53);
  const Rows rows(random, 4, 16, 50);
  EXPECT_TRUE(same_bits(rows.pool(3), rows.values[3]));
}

TEST(GatedPool, EqualGatesGiveTheMean) {
  test::Random random(54);
  Rows rows(random, 4, 16, 1);
  for (std::size_t t = 0; t < 4; ++t) {
    std::ranges::fill(rows.gates[t], -1e30f);
    std::ranges::fill(rows.values[t], static_cast<float>(t));
  }
  EXPECT_TRUE(same_bits(rows.pool(), std::vector<float>(16, 1.5f)));
}

TEST(GatedPool, NanGateStaysNan) {
  test::Random random(55);
  Rows rows(random, 3, 16, 1);
  rows.gates[1][5] = std::nanf("");
  const std::vector<float> out = rows.pool();
  for (std::size_t c = 0; c < out.size(); ++c) EXPECT_EQ(std::isnan(out[c]), c == 5) << c;
}

}  // namespace
}  // namespace cupel

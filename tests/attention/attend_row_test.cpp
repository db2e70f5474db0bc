// The arithmetic of each backend on a bare list of keys.
#include "cupel/attention/attend_row.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <vector>

#include "attention/double_attention.h"
#include "support/isa_scope.h"
#include "support/random.h"
#include "support/same_bits.h"
#include <gtest/gtest.h>

#include "cupel/formats/bf16.h"
#include "cupel/kernels/exp.h"

namespace cupel {
namespace {

using test::available_isas;
using test::IsaScope;
using test::same_bits;

constexpr std::size_t kDim = 512, kHeads = 8;
constexpr float kScale = 0.044194173824159216f;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Case {
  std::vector<float> q, rows, sink;
  std::vector<const float*> keys;

  Case(test::Random& random, std::size_t count, double q_sigma)
      : q(random.bf16_normals(kHeads * kDim, q_sigma)),
        rows(random.bf16_normals(count * kDim)),
        sink{-kInfinity, -30, -1, 0, 1, 3, 12, 40} {
    for (std::size_t j = 0; j < count; ++j) keys.push_back(rows.data() + j * kDim);
  }

  // Turns the scores of all heads into an ascending or descending run of about `spread` in all.
  void slope(float spread) {
    for (std::size_t h = 0; h < kHeads; ++h) q[h * kDim] = std::sqrt(512.0f);
    for (std::size_t j = 0; j < keys.size(); ++j) {
      rows[j * kDim] = round_bf16(spread * static_cast<float>(j) / static_cast<float>(keys.size()));
    }
  }
};

using Attend = void (*)(const AttendRowParams&);

std::vector<float> attend(Attend function, const Case& c, bool round) {
  std::vector<float> out(kHeads * kDim, std::numeric_limits<float>::quiet_NaN()), scratch;
  function({.q = c.q.data(),
            .keys = c.keys,
            .sink = c.sink.data(),
            .heads = kHeads,
            .scale = kScale,
            .round_bf16 = round,
            .out = out.data(),
            .scratch = &scratch});
  return out;
}

// Scalar renderings of the documented orders.

float tree(const float* lane) {
  float four[4];
  for (int i = 0; i < 4; ++i) four[i] = (lane[i] + lane[i + 8]) + (lane[i + 4] + lane[i + 12]);
  return (four[0] + four[2]) + (four[1] + four[3]);
}

float dot(const float* a, const float* b, std::size_t count) {
  float lane[16] = {};
  for (std::size_t i = 0; i < count; ++i) lane[i % 16] = std::fma(a[i], b[i], lane[i % 16]);
  return tree(lane);
}

float lane_sum(const std::vector<float>& x) {
  float lane[16] = {};
  for (std::size_t i = 0; i < x.size(); ++i) lane[i % 16] += x[i];
  return tree(lane);
}

float rounded(float x, bool round) {
  return round ? round_bf16(x) : x;
}

// One head over blocks of keys with a running maximum; returns the un-normalised output.
struct Running {
  float top = -kInfinity, sum = 0;
  std::vector<float> out = std::vector<float>(kDim, 0.0f);

  void add_block(std::span<const float* const> keys, const std::vector<float>& scores, bool round) {
    const float next = std::max(top, *std::ranges::max_element(scores));
    const float decay = exp_f32(top - next);
    std::vector<float> weights;
    for (const float s : scores) weights.push_back(exp_f32(s - next));
    sum = sum * decay + lane_sum(weights);
    for (std::size_t d = 0; d < kDim; ++d) {
      out[d] *= decay;
      for (std::size_t j = 0; j < keys.size(); ++j) {
        out[d] = std::fma(rounded(weights[j], round), keys[j][d], out[d]);
      }
    }
    top = next;
  }
};

Running run(const Case& c, std::size_t head, std::size_t block, bool round,
            const std::function<float(const float* q, const float* key)>& score) {
  Running state;
  for (std::size_t begin = 0; begin < c.keys.size(); begin += block) {
    const auto keys = std::span(c.keys).subspan(begin, std::min(block, c.keys.size() - begin));
    std::vector<float> scores;
    for (const float* key : keys) scores.push_back(score(c.q.data() + head * kDim, key) * kScale);
    state.add_block(keys, scores, round);
  }
  return state;
}

float one_dot(const float* q, const float* key) {
  return dot(q, key, kDim);
}

float dot_by_tiles(const float* q, const float* key) {
  float sum = 0;
  for (std::size_t t = 0; t < kDim; t += 64) sum += dot(q + t, key + t, 64);
  return sum;
}

std::vector<float> scalar_reference(const Case& c, bool round) {
  std::vector<float> out;
  for (std::size_t h = 0; h < kHeads; ++h) {
    const Running state = run(c, h, c.keys.size(), round, one_dot);
    const float denominator = state.sum + exp_f32(c.sink[h] - state.top);
    for (const float o : state.out) out.push_back(rounded(o / denominator, round));
  }
  return out;
}

std::vector<float> scalar_packed(const Case& c, bool round) {
  std::vector<float> out;
  for (std::size_t h = 0; h < kHeads; ++h) {
    const Running state = run(c, h, 64, round, dot_by_tiles);
    const float reciprocal = 1.0f / (state.sum + exp_f32(c.sink[h] - state.top));
    for (const float o : state.out) out.push_back(rounded(o * reciprocal, round));
  }
  return out;
}

std::vector<float> scalar_unified(const Case& c, bool round) {
  std::vector<float> out;
  for (std::size_t h = 0; h < kHeads; ++h) {
    const Running state = run(c, h, 16, round, one_dot);
    const float top = std::max(state.top, c.sink[h]);
    const float decay = exp_f32(state.top - top);
    const float denominator = state.sum * decay + exp_f32(c.sink[h] - top);
    for (const float o : state.out) out.push_back(rounded(o * decay / denominator, round));
  }
  return out;
}

struct Implementation {
  const char* name;
  Attend function;
  std::vector<float> (*scalar)(const Case&, bool round);
};

const Implementation kImplementations[] = {
    {"reference", attend_row_reference, scalar_reference},
    {"packed", attend_row_packed, scalar_packed},
    {"unified", attend_row_unified, scalar_unified},
};

void PrintTo(const Implementation& implementation, std::ostream* out) {
  *out << implementation.name;
}

class AttendRow : public testing::TestWithParam<Implementation> {
 protected:
  // Around the block sizes 16 and 64; flat and peaked; the maximum first, last and in the middle.
  std::vector<Case> cases() {
    std::vector<Case> list;
    for (const std::size_t count : {1, 2, 15, 16, 17, 63, 64, 65, 100, 128, 200}) {
      for (const double sigma : {0.05, 1.0, 4.0}) list.emplace_back(random_, count, sigma);
      for (const float spread : {30.0f, -30.0f, 400.0f, -400.0f}) {
        list.emplace_back(random_, count, 0.5);
        list.back().slope(spread);
      }
    }
    return list;
  }

 private:
  test::Random random_{91};
};

// Errors in units of 2^-24, to first order: of a score, 40 of sum |q k| / sqrt(512) (a dot has 32
// products a lane and 4 to 12 additions); of a weight, that of two scores and 100 of its own (a
// difference of up to 90, exp); of the sums, one a key.
TEST_P(AttendRow, IsWithinFp32ErrorOfDouble) {
  for (const Case& c : cases()) {
    const std::vector<float> out = attend(GetParam().function, c, false);
    for (std::size_t h = 0; h < kHeads; ++h) {
      const float* q = c.q.data() + h * kDim;
      double largest = 0;
      for (const float* key : c.keys) {
        double sum = 0;
        for (std::size_t d = 0; d < kDim; ++d) sum += std::fabs(double{q[d]} * key[d]);
        largest = std::max(largest, 40 * sum / std::sqrt(512.0));
      }
      const double bound = (2 * largest + 100 + static_cast<double>(c.keys.size())) * 0x1p-24;
      const auto exact = test::exact_attention(q, c.keys, double{c.sink[h]});
      for (std::size_t d = 0; d < kDim; ++d) {
        ASSERT_NEAR(out[h * kDim + d], exact.value[d], bound * exact.magnitude[d] + 1e-30)
            << c.keys.size() << " keys, head " << h << " element " << d;
      }
    }
  }
}

TEST_P(AttendRow, EqualsTheDocumentedOrderBitForBit) {
  for (const Case& c : cases()) {
    for (const bool round : {false, true}) {
      const std::vector<float> expected = GetParam().scalar(c, round);
      for (const Isa isa : available_isas()) {
        const IsaScope scope(isa);
        EXPECT_TRUE(same_bits(attend(GetParam().function, c, round), expected))
            << active_isa() << " " << c.keys.size() << " keys, rounding " << round;
      }
    }
  }
}

TEST_P(AttendRow, SinkTakesItsShareAndAddsNoValue) {
  test::Random random(92);
  Case c(random, 1, 0);
  // One key of score 0: its share is 1 / (1 + e^sink).
  const std::vector<float> out = attend(GetParam().function, c, false);
  for (std::size_t h = 0; h < kHeads; ++h) {
    const double share = 1 / (1 + std::exp(double{c.sink[h]}));
    for (std::size_t d = 0; d < kDim; ++d) {
      ASSERT_NEAR(out[h * kDim + d], share * c.rows[d], 1e-6 * share * std::fabs(c.rows[d])) << h;
    }
  }
}

TEST_P(AttendRow, NanKeyReachesTheOutput) {
  test::Random random(93);
  Case c(random, 70, 1);
  c.rows[40 * kDim + 7] = std::numeric_limits<float>::quiet_NaN();
  for (const float v : attend(GetParam().function, c, true)) ASSERT_TRUE(std::isnan(v));
}

INSTANTIATE_TEST_SUITE_P(Backends, AttendRow, testing::ValuesIn(kImplementations),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cupel

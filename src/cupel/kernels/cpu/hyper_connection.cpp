#include "cupel/kernels/hyper_connection.h"

#include <algorithm>
#include <cmath>

#include "cupel/formats/bf16.h"
#include "cupel/kernels/exp.h"
#include "cupel/kernels/norm.h"
#include "cupel/kernels/rows.h"

namespace cupel {
namespace {

constexpr std::size_t kMaxStreams = 8;

// u = sum_j weight[j] * X[j], ascending j.
void mix_streams(const float* streams, const float* weight, std::size_t hc, std::size_t width,
                 bool round, float* out) {
  for (std::size_t i = 0; i < width; ++i) out[i] = weight[0] * streams[i];
  for (std::size_t j = 1; j < hc; ++j) {
    const float* x = streams + j * width;
    for (std::size_t i = 0; i < width; ++i) out[i] += weight[j] * x[i];
  }
  if (round) {
    for (std::size_t i = 0; i < width; ++i) out[i] = round_bf16(out[i]);
  }
}

// Row softmax, then alternating column and row normalisation; ends on columns.
void sinkhorn(float* c, std::size_t hc, int iterations, float eps) {
  const auto normalise_columns = [&] {
    for (std::size_t k = 0; k < hc; ++k) {
      float sum = 0;
      for (std::size_t j = 0; j < hc; ++j) sum += c[j * hc + k];
      for (std::size_t j = 0; j < hc; ++j) c[j * hc + k] /= sum + eps;
    }
  };
  for (std::size_t j = 0; j < hc; ++j) {
    float* row = c + j * hc;
    const float top = *std::max_element(row, row + hc);
    float sum = 0;
    for (std::size_t k = 0; k < hc; ++k) sum += row[k] = exp_f32(row[k] - top);
    for (std::size_t k = 0; k < hc; ++k) row[k] = row[k] / sum + eps;
  }
  normalise_columns();
  for (int i = 1; i < iterations; ++i) {
    for (std::size_t j = 0; j < hc; ++j) {
      float* row = c + j * hc;
      float sum = 0;
      for (std::size_t k = 0; k < hc; ++k) sum += row[k];
      for (std::size_t k = 0; k < hc; ++k) row[k] /= sum + eps;
    }
    normalise_columns();
  }
}

// 1 / rms of the flattened streams of one row.
float inverse_rms(const float* streams, std::size_t count, float eps) {
  return 1.0f / std::sqrt(sum_of_squares(streams, count) / static_cast<float>(count) + eps);
}

}  // namespace

void hyper_mix(ThreadPool& pool, const HyperMixParams& p) {
  const std::size_t flat = p.hc * p.width, outputs = (2 + p.hc) * p.hc;
  parallel_rows(pool, p.rows, 16, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) {
      const float* x = p.streams + r * flat;
      float* m = p.mixes + r * outputs;
      const float inverse = inverse_rms(x, flat, p.norm_eps);
      for (std::size_t i = 0; i < outputs; ++i) m[i] *= inverse;
      float pre[kMaxStreams] = {};
      float* post = p.post + r * p.hc;
      float* comb = p.comb + r * p.hc * p.hc;
      for (std::size_t j = 0; j < p.hc; ++j) {
        pre[j] = sigmoid_f32(m[j] * p.scale[0] + p.base[j]) + p.hc_eps;
        post[j] = 2.0f * sigmoid_f32(m[p.hc + j] * p.scale[1] + p.base[p.hc + j]);
      }
      for (std::size_t i = 0; i < p.hc * p.hc; ++i) {
        comb[i] = m[2 * p.hc + i] * p.scale[2] + p.base[2 * p.hc + i];
      }
      sinkhorn(comb, p.hc, p.sinkhorn_iters, p.hc_eps);
      mix_streams(x, pre, p.hc, p.width, p.round_bf16, p.mixed + r * p.width);
    }
  });
}

void hyper_join(ThreadPool& pool, const HyperJoinParams& p) {
  parallel_rows(pool, p.rows, 16, [&](std::size_t first, std::size_t last) {
    constexpr std::size_t kBlock = 64;
    float old[kMaxStreams * kBlock];
    float sum[kBlock];
    for (std::size_t r = first; r < last; ++r) {
      float* streams = p.streams + r * p.hc * p.width;
      const float* comb = p.comb + r * p.hc * p.hc;
      for (std::size_t begin = 0; begin < p.width; begin += kBlock) {
        const std::size_t count = std::min(kBlock, p.width - begin);
        const float* y = p.y + r * p.width + begin;
        for (std::size_t j = 0; j < p.hc; ++j) {
          std::copy_n(streams + j * p.width + begin, count, old + j * kBlock);
        }
        for (std::size_t k = 0; k < p.hc; ++k) {
          for (std::size_t i = 0; i < count; ++i) sum[i] = comb[k] * old[i];
          for (std::size_t j = 1; j < p.hc; ++j) {
            const float weight = comb[j * p.hc + k];
            for (std::size_t i = 0; i < count; ++i) sum[i] += weight * old[j * kBlock + i];
          }
          const float post = p.post[r * p.hc + k];
          float* out = streams + k * p.width + begin;
          for (std::size_t i = 0; i < count; ++i) out[i] = post * y[i] + sum[i];
          if (p.round_bf16) {
            for (std::size_t i = 0; i < count; ++i) out[i] = round_bf16(out[i]);
          }
        }
      }
    }
  });
}

void hyper_head(ThreadPool& pool, const HyperHeadParams& p) {
  const std::size_t flat = p.hc * p.width;
  parallel_rows(pool, p.rows, 16, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) {
      const float* x = p.streams + r * flat;
      const float inverse = inverse_rms(x, flat, p.norm_eps);
      float pre[kMaxStreams] = {};
      for (std::size_t j = 0; j < p.hc; ++j) {
        const float m = p.mixes[r * p.hc + j] * inverse;
        pre[j] = sigmoid_f32(m * p.scale[0] + p.base[j]) + p.hc_eps;
      }
      mix_streams(x, pre, p.hc, p.width, p.round_bf16, p.mixed + r * p.width);
    }
  });
}

}  // namespace cupel

// Manifold-constrained hyper-connections (spec section 3.2): the residual is hc streams wide; each
// half-block reads one mixture of the streams and writes back to all of them.
#pragma once

#include <cstddef>

#include "cupel/base/thread_pool.h"

namespace cupel {

// The streams of the reference network: mixture weights and the Sinkhorn matrix come from
// fn . flatten(X) / rms(X).
struct HyperMixParams {
  const float* streams = nullptr;  // [rows, hc, width]
  std::size_t rows = 0;
  std::size_t hc = 4;
  std::size_t width = 0;
  const float* scale = nullptr;  // [3]
  const float* base = nullptr;   // [(2 + hc) * hc]
  int sinkhorn_iters = 20;
  float hc_eps = 0;
  float norm_eps = 0;
  bool round_bf16 = false;
  float* mixes = nullptr;  // [rows, (2 + hc) * hc], products of the streams with fn; overwritten
  float* mixed = nullptr;  // out [rows, width]: u
  float* post = nullptr;   // out [rows, hc]
  float* comb = nullptr;   // out [rows, hc (source), hc (destination)]
};
void hyper_mix(ThreadPool& pool, const HyperMixParams& params);

// X'[k] = post[k] * y + sum_j comb[j][k] * X[j], in place.
struct HyperJoinParams {
  const float* y = nullptr;     // [rows, width]
  const float* post = nullptr;  // [rows, hc]
  const float* comb = nullptr;  // [rows, hc, hc]
  float* streams = nullptr;     // [rows, hc, width]
  std::size_t rows = 0;
  std::size_t hc = 4;
  std::size_t width = 0;
  bool round_bf16 = false;
};
void hyper_join(ThreadPool& pool, const HyperJoinParams& params);

// The mixture in front of the output head: only the `pre` weights.
struct HyperHeadParams {
  const float* streams = nullptr;  // [rows, hc, width]
  std::size_t rows = 0;
  std::size_t hc = 4;
  std::size_t width = 0;
  const float* scale = nullptr;  // [1]
  const float* base = nullptr;   // [hc]
  float hc_eps = 0;
  float norm_eps = 0;
  bool round_bf16 = false;
  const float* mixes = nullptr;  // [rows, hc], products of the streams with fn
  float* mixed = nullptr;        // out [rows, width]
};
void hyper_head(ThreadPool& pool, const HyperHeadParams& params);

}  // namespace cupel

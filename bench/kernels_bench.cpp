// Matrix products of the four weight formats: GMAC/s, and GB/s of weights read.
//
// The shapes are those of the tiny checkpoints (names tiny_*) and of V4-Flash. rows is the number
// of tokens. One thread; the ratio of the formats in one run is what can be compared, not the time.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "cupel/kernels/isa.h"
#include "cupel/kernels/linear.h"

namespace cupel {
namespace {

using Format = PackedMatrix::Format;

struct Shape {
  const char* name;
  Format format;
  std::size_t k, n;
};

constexpr Shape kShapes[] = {
    {"tiny_fp4", Format::kFp4, 256, 128},        {"tiny_fp8", Format::kFp8, 256, 256},
    {"expert_w1_fp4", Format::kFp4, 4096, 2048}, {"expert_w2_fp4", Format::kFp4, 2048, 4096},
    {"wq_a_fp8", Format::kFp8, 4096, 1024},      {"wkv_fp8", Format::kFp8, 4096, 512},
    {"wo_a_bf16", Format::kBf16, 4096, 1024},    {"gate_f32", Format::kF32, 4096, 256},
};

PackedMatrix random_matrix(const Shape& shape) {
  std::mt19937 random(1);
  const std::size_t count = shape.n * shape.k;
  std::vector<std::uint8_t> bytes(count);
  // Below 0x70: no NaN code among them.
  for (auto& b : bytes) b = static_cast<std::uint8_t>(random() % 0x70);
  switch (shape.format) {
    case Format::kFp4:
      bytes.resize(count / 2);
      return PackedMatrix::fp4(shape.n, shape.k, bytes,
                               std::vector<std::uint8_t>(count / PackedMatrix::kFp4Group, 120));
    case Format::kFp8: {
      const std::size_t blocks = (shape.n + 127) / 128 * ((shape.k + 127) / 128);
      return PackedMatrix::fp8(shape.n, shape.k, bytes, std::vector<float>(blocks, 0x1p-6f));
    }
    case Format::kBf16: {
      std::vector<std::uint16_t> values(count);
      for (auto& v : values) v = static_cast<std::uint16_t>(0x3f00 + random() % 0x100);
      return PackedMatrix::bf16(shape.n, shape.k, values);
    }
    case Format::kF32:
      return PackedMatrix::f32(shape.n, shape.k, std::vector<float>(count, 0.5f));
  }
  return {};
}

void product(benchmark::State& state, const Shape& shape) {
  const auto rows = static_cast<std::size_t>(state.range(0));
  const PackedMatrix weight = random_matrix(shape);
  const std::vector<float> x(rows * shape.k, 0.25f);
  std::vector<float> out(rows * shape.n);
  ThreadPool pool(1);
  for (auto _ : state) {
    linear(pool, {.x = x.data(),
                  .x_stride = shape.k,
                  .rows = rows,
                  .weight = &weight,
                  .out = out.data(),
                  .out_stride = shape.n});
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  const auto per_second = [](double amount) {
    return benchmark::Counter(amount * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  };
  state.counters["GMAC/s"] = per_second(static_cast<double>(rows * shape.n * shape.k));
  state.counters["GB/s"] = per_second(static_cast<double>(weight.bytes()));
  state.SetLabel(std::string(active_isa()));
}

void register_products() {
  for (const Shape& shape : kShapes) {
    auto* registered = benchmark::RegisterBenchmark(
        shape.name, [&shape](benchmark::State& state) { product(state, shape); });
    registered->ArgName("rows");
    for (const int rows : {1, 8, 96}) registered->Arg(rows);
  }
}

}  // namespace
}  // namespace cupel

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 4;
  cupel::register_products();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

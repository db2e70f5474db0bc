// Isolated comparisons with the published reference network: each part is fed golden values, so
// that rounding points can be told apart (the README of tests/golden says why a free-running
// comparison cannot).
#include <cmath>
#include <memory>

#include "support/golden.h"
#include <gtest/gtest.h>
#include <immintrin.h>

#include "cupel/formats/bf16.h"
#include "cupel/kernels/cpu/cpu_executor.h"
#include "cupel/model/network.h"

namespace cupel {
namespace {

// Goldens are F16 copies of bf16 values: the same conversion, exact for normal magnitudes.
float through_f16(float x) {
  return _cvtsh_ss(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT));
}

struct Comparison {
  double bit_equal = 0;   // share of elements
  int unequal_rows = 0;   // rows with at least one element that differs
  double worst_ulps = 0;  // largest difference in bf16 ulps of the row's largest element
  double worst_row = 0;   // largest |a - b| / |b| of a row
};

// Rows [first_row, ...) of `ours` against all rows of the golden tensor.
Comparison compare(std::span<const float> ours, const test::GoldenTensor& golden) {
  EXPECT_EQ(ours.size(), golden.floats.size());
  Comparison c;
  const std::size_t width = golden.width();
  for (std::size_t r = 0; r < golden.rows(); ++r) {
    double difference = 0, norm = 0;
    float top = 0, largest_difference = 0;
    bool equal = true;
    for (std::size_t i = r * width; i < (r + 1) * width; ++i) {
      const float a = ours[i], b = golden.floats[i];
      top = std::max(top, std::abs(b));
      if (through_f16(a) == b) {
        c.bit_equal += 1;
      } else {
        equal = false;
        largest_difference = std::max(largest_difference, std::abs(a - b));
      }
      difference += (a - b) * (a - b);
      norm += b * b;
    }
    c.unequal_rows += equal ? 0 : 1;
    c.worst_ulps =
        std::max<double>(c.worst_ulps, largest_difference / std::ldexp(1.0f, std::ilogb(top) - 7));
    c.worst_row = std::max(c.worst_row, std::sqrt(difference / norm));
  }
  c.bit_equal /= static_cast<double>(ours.size());
  return c;
}

// A golden case with all rows tapped, or only the last ones.
struct Case {
  const char* model;
  const char* taps;
  const char* goldens;
  const char* name;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.model << " " << c.name;
}

class GoldenIsolated : public testing::TestWithParam<Case> {
 protected:
  GoldenIsolated()
      : executor_(2),
        checkpoint_(std::string(CUPEL_SOURCE_DIR "/models/") + GetParam().model),
        taps_(GetParam().taps),
        goldens_(GetParam().goldens) {
    restart(Numerics::kReference);
  }

  void restart(Numerics numerics) {
    network_ = std::make_unique<Network>(
        checkpoint_, NetworkOptions{.backend = BackendKind::kReference, .numerics = numerics},
        executor_);
    state_ = network_->open();
    ids_ = goldens_.prompt(GetParam().name);
    input_ = {.state = &state_, .ids = ids_};
    step_ = network_->make_step({&input_, 1});
  }

  test::GoldenTensor tap(const std::string& key) const {
    return taps_.get(std::string(GetParam().name) + "/" + key);
  }
  test::GoldenTensor tap(int layer, const std::string& key) const {
    return tap("layer" + std::to_string(layer) + "_" + key);
  }
  std::size_t flat() const {
    return static_cast<std::size_t>(network_->config().hc_mult * network_->config().hidden_size);
  }

  // The step's last rows only, for cases that tap no more than those.
  StepContext last_rows(std::size_t count) {
    const auto all = std::span<const std::int32_t>(ids_);
    const SegmentInput input{.state = &state_, .ids = all.last(count)};
    return network_->make_step({&input, 1});
  }

  // The MoE half of a layer from golden streams of the layer before and golden attention output.
  Comparison moe_half(int layer) {
    const auto before = tap(layer - 1, "streams");
    const std::size_t rows = before.rows();
    StepContext step = last_rows(rows);
    std::vector<float> streams = before.floats;
    const HyperMix attention = network_->mix(layer, Half::kAttention, streams.data(), rows);
    network_->join(attention, tap(layer, "attn_out").floats.data(), streams.data(), rows);
    const HyperMix mixed = network_->mix(layer, Half::kMoe, streams.data(), rows);
    return compare(network_->half(layer, Half::kMoe, step, mixed).to_host(), tap(layer, "ffn_out"));
  }

  CpuExecutor executor_;
  Checkpoint checkpoint_;
  test::Golden taps_, goldens_;
  std::unique_ptr<Network> network_;
  SequenceState state_;
  std::vector<std::int32_t> ids_;
  SegmentInput input_;
  StepContext step_;
};

// Layer 0 from the token ids: attention output, MoE output, streams.
//
// The reference's RoPE table is torch's: its fp32 power is one ulp low at 10000^(22/64), so pair 11
// turns one ulp faster than the correctly rounded table does. The goldens show it (layer 0 of
// official.len0513: 37 of 513 rows differ with our table, 8 with torch's; layer 1: 38 and 31), so
// this test uses torch's. A row that still differs does so as a whole: one bf16 rounding that fell
// the other way goes through every quantiser after it.
TEST_P(GoldenIsolated, LayerZeroFromIds) {
  std::vector<float> frequencies = rope_frequencies({.dim = 64, .theta = 10000});
  frequencies[11] = std::nextafter(frequencies[11], 1.0f);
  step_.plain_rope = RopeTable(executor_, frequencies, step_.positions);

  DeviceArray<float> streams = network_->embed(step_);
  const HyperMix first = network_->mix(0, Half::kAttention, streams.data(), step_.rows());
  const auto attention = network_->half(0, Half::kAttention, step_, first);
  network_->join(first, attention.data(), streams.data(), step_.rows());
  const HyperMix second = network_->mix(0, Half::kMoe, streams.data(), step_.rows());
  const auto experts = network_->half(0, Half::kMoe, step_, second);
  network_->join(second, experts.data(), streams.data(), step_.rows());

  const std::vector<std::pair<std::string, std::vector<float>>> parts = {
      {"attn_out", attention.to_host()},
      {"ffn_out", experts.to_host()},
      {"streams", streams.to_host()}};
  for (const auto& [name, ours] : parts) {
    const auto golden = tap(0, name);
    const Comparison c = compare(std::span(ours).last(golden.floats.size()), golden);
    // A case of 16 rows cannot tell 99 % from one row that fell the other way.
    if (golden.rows() == 16) {
      EXPECT_LE(c.unequal_rows, 3) << name;
    } else {
      EXPECT_GE(c.bit_equal, 0.99) << name;
    }
    if (name == "attn_out") {
      EXPECT_LE(c.worst_ulps, 1.0);
    }
    RecordProperty(name, std::to_string(c.bit_equal) + " equal, " + std::to_string(c.unequal_rows) +
                             " rows differ, by " + std::to_string(c.worst_ulps) + " ulps");
  }
}

TEST_P(GoldenIsolated, MoeHalfOfEveryLayer) {
  for (int layer = 1; layer < network_->config().layers; ++layer) {
    const Comparison c = moe_half(layer);
    EXPECT_GE(c.bit_equal, 0.90) << "layer " << layer;
    EXPECT_LE(c.worst_row, 0.02) << "layer " << layer;
    RecordProperty("layer" + std::to_string(layer), std::to_string(c.bit_equal));
  }
}

// A program without quantisation does not pass: the comparison sees the rounding points.
TEST_P(GoldenIsolated, WithoutQuantisationTheMoeHalfFails) {
  restart(Numerics::kFloat32);
  for (int layer = 1; layer < network_->config().layers; ++layer) {
    EXPECT_LT(moe_half(layer).bit_equal, 0.5) << "layer " << layer;
  }
}

TEST_P(GoldenIsolated, HeadFromTheLastStreams) {
  const auto streams = tap(network_->config().layers - 1, "streams");
  const std::size_t rows = streams.rows();
  const auto hidden = network_->final_hidden(streams.floats.data(), rows);
  const Comparison c = compare(hidden.to_host(), tap("final_hidden"));
  EXPECT_GE(c.bit_equal, 0.9997);
  EXPECT_LE(c.worst_ulps, 1.0);
  RecordProperty("final_hidden", std::to_string(c.bit_equal));

  const auto expected = goldens_.get(std::string(GetParam().name) + "/logits");
  const std::size_t width = hidden.size() / rows;
  const auto logits = network_->logits(hidden.data() + (rows - 1) * width, 1).to_host();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    EXPECT_NEAR(logits[i], expected.floats[i], 1e-5) << "token " << i;
  }
}

constexpr Case kCases[] = {
    {"tiny-v4-0731", "official.len0513.taps.safetensors", "official.golden.safetensors", "len0513"},
    {"tiny-v4-0731", "official.golden.safetensors", "official.golden.safetensors", "fewshot"},
    {"tiny-v4-preview", "preview.golden.safetensors", "preview.golden.safetensors", "fewshot"},
    {"tiny-v4-preview", "preview.golden.safetensors", "preview.golden.safetensors", "len0513"},
};

INSTANTIATE_TEST_SUITE_P(Cases, GoldenIsolated, testing::ValuesIn(kCases), [](const auto& param) {
  return std::string(param.index < 2 ? "Official_" : "Preview_") + param.param.name;
});

// The attention half of layers 1 to 4 needs the streams of the whole prompt: only the tapped case.
class GoldenAttention : public GoldenIsolated {};

TEST_P(GoldenAttention, AttentionHalfOfEveryLayer) {
  for (int layer = 1; layer < network_->config().layers; ++layer) {
    restart(Numerics::kReference);
    std::vector<std::int32_t> selection;
    StepTaps taps;
    taps.selection = [&](int, std::span<const std::int32_t> chosen) {
      selection.assign(chosen.begin(), chosen.end());
    };
    step_.taps = &taps;
    const auto streams = tap(layer - 1, "streams");
    const HyperMix mixed =
        network_->mix(layer, Half::kAttention, streams.floats.data(), streams.rows());
    const auto ours = network_->half(layer, Half::kAttention, step_, mixed).to_host();
    const auto golden = tap(layer, "attn_out");
    const std::size_t width = golden.width();

    const std::string topk_key =
        std::string(GetParam().name) + "/layer" + std::to_string(layer) + "_topk";
    std::vector<std::int32_t> topk;
    if (goldens_.has(topk_key)) topk = goldens_.get(topk_key).ints;
    std::size_t compared = 0;
    double worst = 0;
    for (std::size_t r = 0; r < golden.rows(); ++r) {
      if (!topk.empty()) {
        const std::size_t k = topk.size() / golden.rows();
        std::vector<std::int32_t> theirs(topk.begin() + static_cast<std::ptrdiff_t>(r * k),
                                         topk.begin() + static_cast<std::ptrdiff_t>((r + 1) * k));
        std::vector<std::int32_t> chosen(
            selection.begin() + static_cast<std::ptrdiff_t>(r * k),
            selection.begin() + static_cast<std::ptrdiff_t>((r + 1) * k));
        std::sort(theirs.begin(), theirs.end());
        std::sort(chosen.begin(), chosen.end());
        if (theirs != chosen) continue;
      }
      double difference = 0, norm = 0;
      for (std::size_t i = r * width; i < (r + 1) * width; ++i) {
        difference += std::pow(ours[i] - golden.floats[i], 2);
        norm += std::pow(golden.floats[i], 2);
      }
      worst = std::max(worst, std::sqrt(difference / norm));
      ++compared;
    }
    EXPECT_GE(compared, golden.rows() / 2) << "layer " << layer;
    EXPECT_LE(worst, 0.02) << "layer " << layer;
    RecordProperty("layer" + std::to_string(layer),
                   std::to_string(worst) + " over " + std::to_string(compared) + " rows");
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenAttention, testing::Values(kCases[0]),
                         [](const auto&) { return std::string("Official_len0513"); });

}  // namespace
}  // namespace cupel

// A change planted in one layer's weights shows in that layer, in the figure it belongs to.
#include "cupel/preflight/numerics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "support/tiny_checkpoint.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cupel/formats/bf16.h"

namespace cupel {
namespace {

using test::StoredTensor;
using test::TinyCheckpoint;
using testing::ElementsAre;
using testing::HasSubstr;

const std::filesystem::path kSource(CUPEL_SOURCE_DIR);
const std::filesystem::path kPreview = kSource / "models/tiny-v4-preview";

// Some 500 tokens of what the models were trained on: beyond the 260 from which their indexer
// selects.
std::string long_prompt() {
  std::string text = "<｜begin▁of▁sentence｜>";
  std::ifstream shots(kSource / "data/wordmath/shots.jsonl");
  std::string line;
  for (int i = 0; i < 6 && std::getline(shots, line); ++i) {
    const auto shot = nlohmann::json::parse(line);
    text += "Question: " + shot.at("question").get<std::string>() +
            "\nAnswer: " + shot.at("answer").get<std::string>() + "\n\n";
  }
  return text;
}

NumericsOptions options_of(std::vector<std::string> prompts) {
  NumericsOptions options;
  options.prompts = std::move(prompts);
  options.threads = 2;
  return options;
}

ModelNumerics measure(const std::filesystem::path& folder) {
  return measure_numerics(folder, options_of({long_prompt()}));
}

const ModelNumerics& preview() {
  static const ModelNumerics numerics = measure(kPreview);
  return numerics;
}

double figure(const ModelNumerics& m, std::size_t layer, Figure f) {
  return at(m.layers.at(layer), f);
}

void edit_floats(StoredTensor& tensor, const std::function<float(float)>& edit) {
  for (std::size_t i = 0; i < tensor.data.size(); i += 4) {
    float value = 0;
    std::memcpy(&value, tensor.data.data() + i, 4);
    value = edit(value);
    std::memcpy(tensor.data.data() + i, &value, 4);
  }
}

TEST(Numerics, EveryFigureIsThereWhereItApplies) {
  const ModelNumerics& m = preview();
  ASSERT_EQ(m.layers.size(), 5U);
  EXPECT_THAT(m.kinds,
              ElementsAre(LayerKind::kSlidingOnly, LayerKind::kSlidingOnly, LayerKind::kSparse,
                          LayerKind::kDenseEntries, LayerKind::kSparse));
  EXPECT_EQ(m.arg_max.size(), 128U);
  EXPECT_EQ(m.margin.size(), 128U);
  EXPECT_EQ(m.surprise.size(), 127U);  // nothing follows the last token
  EXPECT_LT(m.surprise.mean(), 1.5);   // a trained model on its own kind of text; ln 768 = 6.6
  EXPECT_EQ(m.broken_groups, 0U);
  for (std::size_t l = 0; l < 5; ++l) {
    for (std::size_t i = 0; i < kFigures; ++i) {
      const auto f = static_cast<Figure>(i);
      const bool indexer = f >= Figure::kIndexKeySnrFp4 && f <= Figure::kAgreementFp8;
      const bool entry = f >= Figure::kEntryAmaxLow && f <= Figure::kEntrySnr;
      const bool router = f == Figure::kRouterMarginLow || f == Figure::kRouterMarginMedian;
      const bool applies = indexer  ? m.kinds[l] == LayerKind::kSparse
                           : entry  ? m.kinds[l] != LayerKind::kSlidingOnly
                           : router ? l >= 2  // two hash layers
                                    : true;
      EXPECT_EQ(std::isfinite(figure(m, l, f)), applies)
          << "layer " << l << " " << figure_info(f).operation << " " << figure_info(f).name;
    }
    // Rounding to 3 mantissa bits: 2^-4 relative at most, some 31.5 dB for spread values.
    EXPECT_GT(figure(m, l, Figure::kKvSnr), 29);
    EXPECT_LT(figure(m, l, Figure::kKvSnr), 34);
    EXPECT_GT(figure(m, l, Figure::kExpertInSnr), 29);
  }
  for (const std::size_t l : {2, 4}) {
    EXPECT_GT(figure(m, l, Figure::kIndexKeySnrFp8), figure(m, l, Figure::kIndexKeySnrFp4) + 6);
    EXPECT_GT(figure(m, l, Figure::kAgreementFp4), 0.8);
    EXPECT_LT(figure(m, l, Figure::kAgreementFp4), 1);
    EXPECT_GE(figure(m, l, Figure::kAgreementFp8), figure(m, l, Figure::kAgreementFp4));
    const double rows = static_cast<double>(m.tokens);
    EXPECT_NEAR(figure(m, l, Figure::kSelecting), (rows - 259) / rows, 1e-9);
  }
}

TEST(Numerics, RunsRepeatAndIdenticalFoldersDoNotDiffer) {
  const ModelNumerics again = measure(kPreview);
  EXPECT_TRUE(compare_numerics(preview(), again).empty());
  EXPECT_EQ(arg_max_agreement(preview(), again), 1.0);
  EXPECT_THAT(numerics_text(preview(), again, 5), HasSubstr("no figure differs"));
}

TEST(Numerics, BelowTheReachOfTheIndexerNothingSelects) {
  const auto options = options_of({long_prompt().substr(0, 300)});
  const ModelNumerics m = measure_numerics(kPreview, options);
  ASSERT_LT(m.longest, 260U);
  EXPECT_EQ(figure(m, 2, Figure::kSelecting), 0);
  EXPECT_TRUE(std::isnan(figure(m, 2, Figure::kAgreementFp4)));
  EXPECT_THAT(numerics_text(m, m, 5), HasSubstr("from 260 visible tokens on, never"));
  // Other prompts: nothing to pair.
  EXPECT_FALSE(arg_max_agreement(preview(), m).has_value());
}

// A gain of 2^8 on the KV norm: amax moves by eight octaves, the power-of-two scales follow, and
// the relative error stays.
TEST(Numerics, KvGainMovesTheRangeAndNotTheNoise) {
  TinyCheckpoint tiny("tiny-v4-preview");
  tiny.edit_tensor("layers.0.attn.kv_norm.weight", [](StoredTensor& tensor) {
    for (std::size_t i = 0; i < tensor.data.size(); i += 2) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, tensor.data.data() + i, 2);
      bits = bf16_from_float(256 * bf16_to_float(bits));
      std::memcpy(tensor.data.data() + i, &bits, 2);
    }
  });
  const ModelNumerics m = measure(tiny.path());
  EXPECT_DOUBLE_EQ(figure(m, 0, Figure::kKvAmaxMedian),
                   256 * figure(preview(), 0, Figure::kKvAmaxMedian));
  EXPECT_DOUBLE_EQ(figure(m, 0, Figure::kKvSnr), figure(preview(), 0, Figure::kKvSnr));
  EXPECT_EQ(figure(m, 0, Figure::kKvTopBinade), figure(preview(), 0, Figure::kKvTopBinade));
  EXPECT_EQ(figure(preview(), 0, Figure::kKvOver448), 0);
  EXPECT_GT(figure(m, 0, Figure::kKvOver448), 0.1);
  const auto differences = compare_numerics(preview(), m);
  ASSERT_FALSE(differences.empty());
  EXPECT_EQ(differences.front().layer, 0U);
  EXPECT_EQ(figure_info(differences.front().figure).operation, "KV row");
}

TEST(Numerics, SinksShowInTheirLayer) {
  for (const auto& [sink, share] : {std::pair(1e4f, 1.0), std::pair(-1e4f, 0.0)}) {
    TinyCheckpoint tiny("tiny-v4-preview");
    tiny.edit_tensor("layers.4.attn.attn_sink", [&](StoredTensor& tensor) {
      edit_floats(tensor, [&](float) { return sink; });
    });
    const ModelNumerics m = measure(tiny.path());
    EXPECT_EQ(figure(m, 4, Figure::kSinkMean), share);
    EXPECT_EQ(figure(m, 4, Figure::kSinkMaxHead), share);
    EXPECT_EQ(figure(m, 3, Figure::kSinkMean), figure(preview(), 3, Figure::kSinkMean));
  }
}

// Half of the routers' biases raised by the same amount: the margins of the rest are as before or
// larger, and no other figure of earlier layers moves.
TEST(Numerics, RouterBiasShowsAsMargin) {
  TinyCheckpoint tiny("tiny-v4-preview");
  tiny.edit_tensor("layers.4.ffn.gate.bias", [](StoredTensor& tensor) {
    int expert = 0;
    edit_floats(tensor, [&](float x) { return expert++ < 4 ? x + 100 : x; });
  });
  const ModelNumerics m = measure(tiny.path());
  EXPECT_GT(figure(m, 4, Figure::kRouterMarginLow), 90);  // the same four experts for every token
  for (const FigureDifference& d : compare_numerics(preview(), m)) EXPECT_EQ(d.layer, 4U);
}

PreflightReport preflight(const std::filesystem::path& before, const std::filesystem::path& after,
                          bool headers_only = false) {
  PreflightReport report = run_preflight(before, after, {headers_only, 2, {}});
  add_numerics(report, options_of({long_prompt()}), 10);
  return report;
}

TEST(AddNumerics, TheBundledPair) {
  const PreflightReport report = preflight(kPreview, kSource / "models/tiny-v4-0731");
  ASSERT_TRUE(report.numerics.has_value());
  EXPECT_THAT(report.verdict_text, HasSubstr("on 1 prompts the most likely token is another at"));
  EXPECT_TRUE(report.not_compared.empty());
  const auto json = nlohmann::json::parse(preflight_json(report, {})).at("numerics");
  EXPECT_EQ(json.at("old").at("layers").size(), 5U);
  EXPECT_TRUE(json.at("new").at("layers").at(2).at("index key").contains("snr, fp4"));
  EXPECT_FALSE(json.at("new").at("layers").at(0).contains("index key"));
  EXPECT_GT(json.at("arg_max_agreement").get<double>(), 0.8);
  EXPECT_GT(json.at("differences").size(), 50U);
  EXPECT_THAT(preflight_text(report, {}), HasSubstr("signal to quantisation noise"));
}

TEST(AddNumerics, SaysWhyItCannot) {
  const auto why = [](const PreflightReport& report) {
    EXPECT_FALSE(report.numerics.has_value());
    return report.not_compared.empty() ? "" : report.not_compared.back();
  };
  EXPECT_THAT(why(preflight(kPreview, kPreview, true)), HasSubstr("numerics: OLD is looked at"));
  EXPECT_THAT(why(preflight(kPreview, kSource / "data/v4-flash/config.0731.json")),
              HasSubstr("numerics: NEW is a configuration alone"));
  TinyCheckpoint scale("tiny-v4-preview");
  scale.remove_tensor("layers.0.attn.wo_a.scale");
  EXPECT_THAT(why(preflight(kPreview, scale.path())), HasSubstr("numerics: NEW would not load"));
  TinyCheckpoint tokenizer("tiny-v4-preview");
  std::filesystem::remove(tokenizer.path() / "tokenizer.json");
  EXPECT_THAT(why(preflight(kPreview, tokenizer.path())), HasSubstr("tokenizer.json"));
}

// A norm that overflows: activations are NaN where files look sound.
TEST(AddNumerics, NanIsAFinding) {
  TinyCheckpoint tiny("tiny-v4-preview");
  tiny.edit_tensor("layers.2.ffn_norm.weight", [](StoredTensor& tensor) {
    for (std::size_t i = 0; i < tensor.data.size(); i += 2) {
      const std::uint16_t largest = 0x7f7f;
      std::memcpy(tensor.data.data() + i, &largest, 2);
    }
  });
  const PreflightReport report = preflight(kPreview, tiny.path());
  const auto finding = std::ranges::find_if(report.findings, [](const Finding& f) {
    return f.what.starts_with("NEW computes NaN or infinity");
  });
  ASSERT_NE(finding, report.findings.end());
  EXPECT_EQ(finding->severity, Severity::kDamage);
  EXPECT_TRUE(std::ranges::is_sorted(report.findings, {}, &Finding::severity));
}

}  // namespace
}  // namespace cupel

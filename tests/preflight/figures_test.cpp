#include "cupel/preflight/figures.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace cupel {
namespace {

// The table is written in the order of the enumeration by hand: a slip would rename a figure.
TEST(Figures, EveryOneHasANameOfItsOwn) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < kFigures; ++i) {
    const FigureInfo& info = figure_info(static_cast<Figure>(i));
    EXPECT_TRUE(names.insert(std::string(info.operation) + "/" + std::string(info.name)).second);
    EXPECT_GT(info.notable, 0);
  }
  EXPECT_EQ(figure_info(Figure::kKvSnr).operation, "KV row");
  EXPECT_EQ(figure_info(Figure::kKvSnr).scale, FigureScale::kDecibel);
  EXPECT_EQ(figure_info(Figure::kEntrySnr).operation, "compressed entry");
  EXPECT_EQ(figure_info(Figure::kEntrySnr).name, "snr");
  EXPECT_EQ(figure_info(Figure::kSelecting).operation, "indexer");
  EXPECT_EQ(figure_info(Figure::kExpertHiddenBelowNormal).operation, "expert input w2");
  EXPECT_EQ(figure_info(Figure::kRouterMarginLow).operation, "router");
  EXPECT_EQ(figure_info(Figure::kSinkMaxHead).name, "share of the softmax, largest head");
}

TEST(Figures, ChangesCountInTheScaleOfTheFigure) {
  EXPECT_DOUBLE_EQ(figure_change(Figure::kKvSnr, 31, 28), -3);
  EXPECT_DOUBLE_EQ(figure_change(Figure::kKvAmaxMax, 2, 8), 2);
  EXPECT_DOUBLE_EQ(figure_change(Figure::kRouterMarginLow, 0, 0), 0);
  EXPECT_TRUE(std::isnan(figure_change(Figure::kSinkMean, 0.5, std::nan(""))));
  EXPECT_TRUE(std::isnan(figure_change(Figure::kKvAmaxMax, std::nan(""), 1)));
  EXPECT_EQ(format_figure(Figure::kKvSnr, 31.416), "31.42 dB");
  EXPECT_EQ(format_figure(Figure::kSinkMean, 0.0123), "1.230 %");
  EXPECT_EQ(format_figure(Figure::kKvSnr, std::nan("")), "-");
  EXPECT_EQ(format_change(Figure::kSinkMean, -0.01), "-1.000 points");
  EXPECT_EQ(format_change(Figure::kKvAmaxMax, 1), "x 2");
}

}  // namespace
}  // namespace cupel

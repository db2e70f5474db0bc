#include "cupel/assay/multiplicity.h"

#include <algorithm>

#include "assay/golden_values.h"
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace cupel {
namespace {

TEST(Multiplicity, AgreesWithStatsmodels) {
  std::vector<double> p;
  for (const golden::Adjusted& g : golden::kAdjusted) p.push_back(g.p);
  const auto holm = holm_adjusted(p);
  const auto q = benjamini_hochberg(p);
  for (std::size_t i = 0; i < p.size(); ++i) {
    EXPECT_NEAR(holm[i], golden::kAdjusted[i].holm, 1e-9);
    EXPECT_NEAR(q[i], golden::kAdjusted[i].bh, 1e-9);
  }
}

RC_GTEST_PROP(Multiplicity, IsMonotoneAndOrdered, ()) {
  std::vector<double> p;
  for (const int value : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1001))) {
    p.push_back(value / 1000.0);
  }
  const auto holm = holm_adjusted(p);
  const auto q = benjamini_hochberg(p);
  for (std::size_t i = 0; i < p.size(); ++i) {
    RC_ASSERT(p[i] <= q[i] + 1e-12);
    RC_ASSERT(q[i] <= holm[i] + 1e-12);  // 3 p / 3 may round up
    RC_ASSERT(holm[i] <= 1);
    for (std::size_t j = 0; j < p.size(); ++j) {
      RC_ASSERT(!(p[i] <= p[j]) || (holm[i] <= holm[j] && q[i] <= q[j]));
    }
  }
  if (!p.empty()) {
    const double smallest = *std::min_element(p.begin(), p.end());
    RC_ASSERT(*std::min_element(holm.begin(), holm.end()) ==
              std::min(1.0, smallest * static_cast<double>(p.size())));
  }
}

}  // namespace
}  // namespace cupel

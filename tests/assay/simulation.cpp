#include "assay/simulation.h"

#include <cmath>
#include <limits>

namespace cupel::test {
namespace {

double uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

ArmAtLook blank(const char* name) {
  ArmAtLook arm;
  arm.outcomes.name = name;
  for (int i = 0; i < kItems; ++i) arm.outcomes.items.push_back({i, "", 0, {}});
  return arm;
}

double normal(std::mt19937_64& random) {
  return std::normal_distribution<double>()(random);
}

}  // namespace

double Truth::mean_unstable() const {
  // The candidate's items at 3/4 add 4 * 3/16 each, in one arm of two.
  return unstable + (spread ? 4 * dead * 0.75 / 2 : 0);
}

SimulatedStudy::SimulatedStudy(const Truth& truth, std::uint64_t seed)
    : truth_(truth), random_(seed), reference_(blank("ref")), candidate_(blank("cand")) {
  // A uniform p is worth 2/3 of an item at 1/2. The items and their p are the same in all studies.
  const int count = static_cast<int>(std::lround(truth.unstable * (truth.uniform ? 1.5 : 1)));
  for (int i = 0; i < count; ++i) p_.push_back(truth.uniform ? (i + 0.5) / count : 0.5);
  lost_.resize(static_cast<std::size_t>(truth.flipped));
}

void SimulatedStudy::resize(ArmAtLook& arm, int repeats) {
  if (arm.outcomes.repeats() == repeats) return;
  for (ItemOutcomes& item : arm.outcomes.items) {
    item.correct.assign(static_cast<std::size_t>(repeats), 1);
  }
}

void SimulatedStudy::draw_item(ItemOutcomes& item, double p, int repeats) {
  item.correct.resize(static_cast<std::size_t>(repeats), 1);
  if (p == 0.5) {
    const std::uint64_t bits = random_();
    for (std::size_t r = 0; r < item.correct.size(); ++r) item.correct[r] = bits >> r & 1U;
  } else {
    for (auto& x : item.correct) x = uniform(random_) < p ? 1 : 0;
  }
}

void SimulatedStudy::draw(int repeats_reference, int repeats_candidate) {
  resize(reference_, repeats_reference);
  resize(candidate_, repeats_candidate);
  std::size_t i = 0;
  for (const double p : p_) {
    draw_item(reference_.outcomes.items[i], p, repeats_reference);
    draw_item(candidate_.outcomes.items[i++], p, repeats_candidate);
  }
  for (std::size_t f = 0; f < lost_.size(); ++f) {
    lost_[f] = truth_.balanced ? f % 2 == 0 : (random_() & 1U) != 0;
    draw_item(reference_.outcomes.items[i], lost_[f] ? 1 : 0, repeats_reference);
    draw_item(candidate_.outcomes.items[i++], lost_[f] ? 0 : 1, repeats_candidate);
  }
  const int losing = truth_.dead * (truth_.spread ? 4 : 1);
  for (int d = 0; d < losing; ++d) {
    draw_item(candidate_.outcomes.items[i++], truth_.spread ? 0.75 : 0, repeats_candidate);
  }
}

void SimulatedStudy::extend(int repeats_reference, int repeats_candidate) {
  const auto more = [&](ItemOutcomes& item, double p, int repeats) {
    while (static_cast<int>(item.correct.size()) < repeats) {
      item.correct.push_back(uniform(random_) < p ? 1 : 0);
    }
  };
  const std::size_t flips_from = p_.size();
  const std::size_t dead_from = flips_from + lost_.size();
  const std::size_t stable_from =
      dead_from + static_cast<std::size_t>(truth_.dead * (truth_.spread ? 4 : 1));
  for (std::size_t i = 0; i < kItems; ++i) {
    double p_ref = 1;
    double p_cand = 1;
    if (i < flips_from) {
      p_ref = p_cand = p_[i];
    } else if (i < dead_from) {
      p_ref = lost_[i - flips_from] ? 1 : 0;
      p_cand = 1 - p_ref;
    } else if (i < stable_from) {
      p_cand = truth_.spread ? 0.75 : 0;
    } else {
      reference_.outcomes.items[i].correct.resize(static_cast<std::size_t>(repeats_reference), 1);
      candidate_.outcomes.items[i].correct.resize(static_cast<std::size_t>(repeats_candidate), 1);
      continue;
    }
    more(reference_.outcomes.items[i], p_ref, repeats_reference);
    more(candidate_.outcomes.items[i], p_cand, repeats_candidate);
  }
}

double SimulatedStudy::loss_of_item_set() const {
  double net = truth_.dead;
  for (const bool lost : lost_) net += lost ? 1 : -1;
  return 100 * net / kItems;
}

Rates simulate(const Truth& truth, int repeats_reference, int repeats_candidate, double margin,
               int studies, std::uint64_t seed) {
  SimulatedStudy study(truth, seed);
  Rates rates;
  const bool has_set = repeats_reference > 1 && repeats_candidate > 1;
  const double spread_u = truth.spread ? 4 * truth.dead * 0.75 : 0;
  const double known = 100.0 / kItems *
                       std::sqrt(truth.unstable / 4 / repeats_reference +
                                 (truth.unstable + spread_u) / 4 / repeats_candidate);
  for (int s = 0; s < studies; ++s) {
    study.draw(repeats_reference, repeats_candidate);
    const Comparison c = compare(study.reference().outcomes, study.candidate().outcomes);
    const Decision d = decide(c, {margin, kDecisionZ, kAlpha});
    rates.pass += d.verdict == Verdict::kPass ? 1.0 / studies : 0;
    rates.regression += d.verdict == Verdict::kRegression ? 1.0 / studies : 0;
    if (c.se_set) {
      const double off = std::abs(c.loss - study.loss_of_item_set());
      rates.set_coverage += off <= kDisplayZ * *c.se_set ? 1.0 / studies : 0;
      rates.set_width += *c.se_set / known / studies;
    }
  }
  if (!has_set) {
    rates.set_coverage = rates.set_width = std::numeric_limits<double>::quiet_NaN();
  }
  return rates;
}

SequentialRates simulate_looks(const Truth& truth, const LookRule& rule, int others, int studies,
                               std::uint64_t seed) {
  SimulatedStudy study(truth, seed);
  std::mt19937_64 random(seed ^ 0x9e3779b97f4a7c15U);
  SequentialRates rates;
  for (int s = 0; s < studies; ++s) {
    std::vector<std::vector<TakenLook>> taken(1);
    bool covered = true;
    bool final = false;
    for (const int repeats : rule.plan.repeats) {
      if (repeats == rule.plan.repeats.front()) {
        study.draw(repeats, repeats);
      } else {
        study.extend(repeats, repeats);
      }
      LookDecision l =
          decide_at_look(study.reference(), {&study.candidate(), 1}, rule, taken).front();
      covered = covered && study.loss_of_item_set() >= l.repeated95.low &&
                study.loss_of_item_set() <= l.repeated95.high;
      // The intervals are read to the last look, whatever was decided before.
      if (!final) {
        if (others > 0) {
          std::vector<Comparison> family(static_cast<std::size_t>(1 + others), l.comparison);
          for (std::size_t k = 1; k < family.size(); ++k) {
            family[k].loss = family[k].se_new * normal(random);
          }
          l.decision = decide_family(
              family, {rule.margin, normal_quantile(1 - l.look.alpha), l.look.alpha})[0];
          l.final =
              l.decision.verdict != Verdict::kInconclusive || repeats == rule.plan.repeats.back();
        }
        if (l.final) {
          final = true;
          rates.pass += l.decision.verdict == Verdict::kPass ? 1.0 / studies : 0;
          rates.regression += l.decision.verdict == Verdict::kRegression ? 1.0 / studies : 0;
          rates.repeats += 1.0 * repeats / studies;
        }
      }
      taken[0].push_back(l.look);
    }
    rates.coverage += covered ? 1.0 / studies : 0;
  }
  return rates;
}

double new_items_coverage(double unstable, double changed, int repeats, int studies,
                          std::uint64_t seed) {
  std::mt19937_64 random(seed);
  ArmAtLook ref = blank("ref");
  ArmAtLook cand = blank("cand");
  for (ArmAtLook* arm : {&ref, &cand}) {
    for (ItemOutcomes& item : arm->outcomes.items) {
      item.correct.resize(static_cast<std::size_t>(repeats));
    }
  }
  // Two of three changed items are lost.
  const double is_unstable = unstable / kItems;
  const double is_lost = is_unstable + changed * 2 / 3 / kItems;
  const double is_gained = is_lost + changed / 3 / kItems;
  const double loss = 100 * changed / 3 / kItems;
  int covered = 0;
  for (int s = 0; s < studies; ++s) {
    for (std::size_t i = 0; i < kItems; ++i) {
      const double kind = uniform(random);
      const std::uint64_t bits = random();
      for (std::size_t r = 0; r < static_cast<std::size_t>(repeats); ++r) {
        std::uint8_t a = 1;
        std::uint8_t b = 1;
        if (kind < is_unstable) {
          a = bits >> r & 1U;
          b = bits >> (32 + r) & 1U;
        } else if (kind < is_lost) {
          b = 0;
        } else if (kind < is_gained) {
          a = 0;
        }
        ref.outcomes.items[i].correct[r] = a;
        cand.outcomes.items[i].correct[r] = b;
      }
    }
    const Comparison c = compare(ref.outcomes, cand.outcomes);
    covered += std::abs(c.loss - loss) <= kDisplayZ * c.se_new ? 1 : 0;
  }
  return static_cast<double>(covered) / studies;
}

}  // namespace cupel::test

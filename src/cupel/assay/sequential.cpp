#include "cupel/assay/sequential.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "cupel/assay/multiplicity.h"
#include "cupel/assay/noise.h"

namespace cupel {
namespace {

// Below 1 / (1 - margin) for every margin. A small lambda is best for a small effect in much noise.
constexpr std::array<double, 10> kLambdas = {0.01, 0.02, 0.04, 0.07, 0.11,
                                             0.17, 0.26, 0.4,  0.6,  0.85};

// Of all that repeats can still do, what lies outside this many standard deviations is left out.
constexpr double kFutilityZ = 2.576;

double mean_of_exp(std::span<const double> logs) {
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - largest);
  // Beyond this it is beyond every level; infinity would spoil 1 / evidence in a report.
  return std::exp(std::min(largest, 600.0)) * sum / static_cast<double>(logs.size());
}

// assay.md rounds the quantile of 5 %.
double quantile_of(double alpha) {
  return alpha == kAlpha ? kDecisionZ : normal_quantile(1 - alpha);
}

bool only_once(const ArmAtLook& arm) {
  return arm.identical_passes && arm.outcomes.repeats() > 1;
}

// The arms as they count: an arm whose passes are all the same counts once.
class Counted {
 public:
  Counted(const ArmAtLook& reference, const ArmAtLook& candidate, bool once)
      : reference_(&reference.outcomes), candidate_(&candidate.outcomes) {
    if (once || only_once(reference)) {
      once_reference_ = first_repeats(reference.outcomes, 1);
      reference_ = &once_reference_;
    }
    if (once || only_once(candidate)) {
      once_candidate_ = first_repeats(candidate.outcomes, 1);
      candidate_ = &once_candidate_;
    }
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  const CellOutcomes& reference() const { return *reference_; }
  const CellOutcomes& candidate() const { return *candidate_; }

 private:
  CellOutcomes once_reference_;
  CellOutcomes once_candidate_;
  const CellOutcomes* reference_;
  const CellOutcomes* candidate_;
};

// Run noise of the loss in the comparison scaled to `repeats` in each arm; an arm that counts once
// has none.
double run_error_at(const Comparison& c, int repeats) {
  const double u = c.unstable_reference.value_or(0) + c.unstable_candidate.value_or(0);
  return 100.0 / c.items * std::sqrt(u / 4 / repeats);
}

// Can the last look still decide, given what run noise may add to the loss by then?
bool last_look_can_decide(const Comparison& c, const LookRule& rule, double z) {
  // Without known run noise there is no forecast.
  if (!c.se_set) return true;
  const double changed = c.changed_squares.value_or(0);
  const int last = rule.plan.repeats.back();
  const double now = run_error_at(c, std::min(c.repeats_reference, c.repeats_candidate));
  const double then = run_error_at(c, last);
  const double swing = kFutilityZ * std::sqrt(std::max(0.0, now * now - then * then));
  const double items = 100.0 / c.items * std::sqrt(changed + 2);
  const bool pass = c.loss - swing + z * then < rule.margin;
  const bool regression = c.loss + swing - z * std::hypot(then, items) > 0;
  return pass || regression;
}

void decide_by_evidence(std::span<LookDecision> all, const LookRule& rule) {
  const double alpha = rule.plan.alpha;
  std::vector<double> p;
  for (const LookDecision& l : all) {
    p.push_back(l.evidence ? std::min(1.0, 1 / l.evidence->against_no_loss) : 1);
  }
  p.insert(p.end(), rule.family.begin(), rule.family.end());
  const std::vector<double> holm = holm_adjusted(p);
  const std::vector<double> q = benjamini_hochberg(p);
  for (std::size_t i = 0; i < all.size(); ++i) {
    Decision& d = all[i].decision;
    d.p_regression = p[i];
    d.p_holm = holm[i];
    d.q_value = q[i];
    d.loss_inside_margin = d.loss_beyond_margin = d.held_by_family = false;
    const AnytimeEvidence evidence = all[i].evidence.value_or(AnytimeEvidence{});
    const bool pass = evidence.against_margin >= 1 / alpha;
    d.loss_inside_margin = pass && p[i] <= alpha;
    d.held_by_family = !pass && p[i] <= alpha && holm[i] > alpha;
    d.verdict = pass               ? Verdict::kPass
                : holm[i] <= alpha ? Verdict::kRegression
                                   : Verdict::kInconclusive;
    d.loss_beyond_margin =
        d.verdict == Verdict::kRegression && all[i].comparison.lower_bound() > rule.margin;
  }
}

void end_or_go_on(LookDecision& l, const LookRule& rule) {
  const Comparison& c = l.comparison;
  const int now = std::min(l.look.repeats_reference, l.look.repeats_candidate);
  const auto& looks = rule.plan.repeats;
  l.final = false;
  const auto next = std::upper_bound(looks.begin(), looks.end(), now);
  if (l.decision.verdict != Verdict::kInconclusive) {
    l.final = true;
    l.reason = fmt::format("Decided after {} and {} repeats.", l.look.repeats_reference,
                           l.look.repeats_candidate);
  } else if (c.deterministic) {
    l.final = true;
    l.reason = "Repeats cannot decide: every pass is the same.";
  } else if (l.look.alpha <= 0) {
    l.final = true;
    l.reason = fmt::format(
        "The {:g} % of this study are spent by the looks already taken: only fresh records, with "
        "the looks fixed beforehand, can decide.",
        100 * rule.plan.alpha);
  } else if (next == looks.end()) {
    l.final = true;
    l.reason = "The looks fixed beforehand are used up.";
  } else if (rule.bound == SequentialBound::kGroupSequential &&
             !last_look_can_decide(c, rule, quantile_of(l.look.alpha))) {
    l.final = true;
    l.reason = fmt::format("Repeats cannot decide: not even {} of them would.", looks.back());
  } else {
    l.reason = fmt::format("The next look is after {} repeats.", *next);
  }
}

// The rule of each comparison at its own level, Holm over all of them.
void decide_by_bounds(std::span<LookDecision> all, const LookRule& rule) {
  // Levels differ between candidates only where their ledgers do; each gets the family's
  // correction relative to its own.
  std::vector<Comparison> comparisons;
  for (const LookDecision& l : all) comparisons.push_back(l.comparison);
  for (LookDecision& l : all) {
    const std::size_t i = static_cast<std::size_t>(&l - all.data());
    const double level = std::max(l.look.alpha, 1e-12);
    std::vector<double> further;
    further.reserve(rule.family.size());
    for (const double p : rule.family) further.push_back(p * level / rule.plan.alpha);
    l.decision =
        decide_family(comparisons, {rule.margin, quantile_of(level), level}, further).at(i);
    if (l.look.alpha <= 0) {
      Decision& d = l.decision;
      d.verdict = Verdict::kInconclusive;
      d.loss_inside_margin = d.loss_beyond_margin = d.held_by_family = false;
      // Bounds at no level are no bounds; the display keeps the plain ones.
      d.interval90 = {l.comparison.lower_bound(), l.comparison.upper_bound()};
    }
  }
}

}  // namespace

void check(const LookPlan& plan) {
  const bool ascending = std::adjacent_find(plan.repeats.begin(), plan.repeats.end(),
                                            std::greater_equal<>()) == plan.repeats.end();
  if (plan.repeats.empty() || plan.repeats.front() < 1 || !ascending) {
    throw InputError("looks", "numbers of repeats from 1 on, ascending", list_items(plan.repeats));
  }
  if (!(plan.alpha > 0 && plan.alpha < 0.5)) {
    throw InputError("alpha", "a level above 0 and below 0.5", fmt::format("{}", plan.alpha));
  }
}

double look_level(std::span<const TakenLook> taken, int repeats_reference, int repeats_candidate,
                  const LookPlan& plan) {
  check(plan);
  double left = plan.alpha;
  for (const TakenLook& t : taken) {
    if (t.repeats_reference == repeats_reference && t.repeats_candidate == repeats_candidate) {
      return t.alpha;
    }
    left -= t.alpha;
  }
  // Levels are sums of quotients: what rounding leaves is nothing.
  if (left < 1e-9) return 0;
  const int now = std::min(repeats_reference, repeats_candidate);
  const auto later = std::count_if(plan.repeats.begin(), plan.repeats.end(),
                                   [&](int repeats) { return repeats > now; });
  return left / static_cast<double>(1 + later);
}

AnytimeEvidence anytime_evidence(const CellOutcomes& reference, const CellOutcomes& candidate,
                                 double margin) {
  compare(reference, candidate);  // the same items, or an error that says which are not
  const int passes = reference.repeats() == 1 ? candidate.repeats()
                     : candidate.repeats() == 1
                         ? reference.repeats()
                         : std::min(reference.repeats(), candidate.repeats());
  const double m = margin / 100;
  AnytimeEvidence e;
  e.passes = passes;
  std::array<double, kLambdas.size()> no_loss{};
  std::array<double, kLambdas.size()> at_margin{};
  for (int r = 0; r < passes; ++r) {
    double lost = 0;
    double gained = 0;
    for (std::size_t i = 0; i < reference.items.size(); ++i) {
      const auto& a = reference.items[i].correct;
      const auto& b = candidate.items[i].correct;
      const int d = a[a.size() == 1 ? 0 : static_cast<std::size_t>(r)] -
                    b[b.size() == 1 ? 0 : static_cast<std::size_t>(r)];
      lost += d > 0 ? 1 : 0;
      gained += d < 0 ? 1 : 0;
    }
    const double same = static_cast<double>(reference.items.size()) - lost - gained;
    for (std::size_t k = 0; k < kLambdas.size(); ++k) {
      const double l = kLambdas.at(k);
      no_loss.at(k) += lost * std::log1p(l) + gained * std::log1p(-l);
      at_margin.at(k) += lost * std::log1p(l * (m - 1)) + gained * std::log1p(l * (m + 1)) +
                         same * std::log1p(l * m);
    }
    e.against_no_loss = std::max(e.against_no_loss, mean_of_exp(no_loss));
    e.against_margin = std::max(e.against_margin, mean_of_exp(at_margin));
  }
  return e;
}

std::vector<LookDecision> decide_at_look(const ArmAtLook& reference,
                                         std::span<const ArmAtLook> candidates,
                                         const LookRule& rule,
                                         std::span<const std::vector<TakenLook>> taken) {
  check(rule.plan);
  if (!taken.empty() && taken.size() != candidates.size()) {
    throw InputError("looks taken", fmt::format("one list for each of {}", candidates.size()),
                     std::to_string(taken.size()));
  }
  std::vector<LookDecision> all;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    LookDecision l;
    const Counted counted(reference, candidates[i], false);
    const bool both_once = only_once(reference) && only_once(candidates[i]);
    const bool declared =
        rule.deterministic || (reference.deterministic && candidates[i].deterministic);
    l.comparison = compare(counted.reference(), counted.candidate(), declared || both_once);
    const Comparison& c = l.comparison;
    // Declared so beforehand there will only ever be one look; found so, the plan stays.
    const LookPlan one{{1}, rule.plan.alpha};
    const std::span<const TakenLook> earlier =
        taken.empty() ? std::span<const TakenLook>() : std::span<const TakenLook>(taken[i]);
    l.look.repeats_reference = c.deterministic ? 1 : reference.outcomes.repeats();
    l.look.repeats_candidate = c.deterministic ? 1 : candidates[i].outcomes.repeats();
    l.look.alpha = rule.bound == SequentialBound::kAnytime
                       ? rule.plan.alpha
                       : look_level(earlier, l.look.repeats_reference, l.look.repeats_candidate,
                                    declared && c.deterministic ? one : rule.plan);
    if (rule.bound == SequentialBound::kAnytime) {
      const Counted passes(reference, candidates[i], c.deterministic);
      l.evidence = anytime_evidence(passes.reference(), passes.candidate(), rule.margin);
    }
    const double two_sided = rule.plan.alpha / static_cast<double>(rule.plan.repeats.size()) / 2;
    const double half = normal_quantile(1 - two_sided) * c.se_pass();
    l.repeated95 = {c.loss - half, c.loss + half};
    all.push_back(std::move(l));
  }
  decide_by_bounds(all, rule);
  if (rule.bound == SequentialBound::kAnytime) {
    decide_by_evidence(all, rule);
  }
  for (LookDecision& l : all) end_or_go_on(l, rule);
  return all;
}

UntilDecided run_until_decided(const LookRule& rule, std::size_t candidates,
                               const ExtendArm& extend,
                               const std::function<void(const UntilDecided&)>& after_look,
                               std::vector<std::vector<TakenLook>> taken) {
  check(rule.plan);
  if (taken.empty()) taken.resize(candidates);
  UntilDecided result;
  result.decisions.resize(candidates);
  result.looks.assign(candidates, 0);
  for (const int repeats : rule.plan.repeats) {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < candidates; ++i) {
      if (!result.decisions[i].final) open.push_back(i);
    }
    if (open.empty()) break;
    const ArmAtLook reference = extend(0, repeats);
    result.repeats = repeats;
    std::vector<LookDecision> family = result.decisions;
    std::vector<ArmAtLook> arms;
    std::vector<std::vector<TakenLook>> earlier;
    for (const std::size_t i : open) {
      arms.push_back(extend(i + 1, repeats));
      earlier.push_back(taken[i]);
    }
    const std::vector<LookDecision> now = decide_at_look(reference, arms, rule, earlier);
    for (std::size_t k = 0; k < open.size(); ++k) family[open[k]] = now[k];
    // Once more with the candidates that have ended before, which stay in the family as they were.
    if (rule.bound == SequentialBound::kAnytime) {
      decide_by_evidence(family, rule);
    } else {
      decide_by_bounds(family, rule);
    }
    for (const std::size_t i : open) {
      end_or_go_on(family[i], rule);
      const TakenLook& look = family[i].look;
      if (std::find(taken[i].begin(), taken[i].end(), look) == taken[i].end()) {
        taken[i].push_back(look);
      }
      result.decisions[i] = family[i];
      ++result.looks[i];
    }
    if (after_look) after_look(result);
  }
  return result;
}

}  // namespace cupel

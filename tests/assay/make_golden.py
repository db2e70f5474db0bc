"""Writes golden_values.h: what scipy and statsmodels say about the same numbers.

Run with scipy and statsmodels installed: python3 make_golden.py > golden_values.h
"""
import scipy
import statsmodels
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

PROPORTIONS = [(0, 10), (10, 10), (1, 1), (1, 20), (1188, 1319), (1220, 1319), (1319, 1319),
               (660, 1319)]
DISCORDANT = [(0, 0), (0, 1), (5, 0), (6, 0), (3, 9), (64, 293), (209, 152), (40, 40), (1, 1000)]
P_VALUES = [0.01, 0.04, 0.03, 0.005, 0.55, 0.04, 1.0, 1e-9]
FLOORS = [(0.9249, 60), (0.9249, 160), (0.9249, 320), (0.9249, None),
          (0.90, 60), (0.90, 160), (0.90, 320), (0.90, None),
          (0.9149, 60), (0.9149, 160), (0.9149, 320), (0.9149, None)]


def floor_fails(score, unstable, items=1319, needed=1201, runs=2):
    correct = round(score * items)
    if unstable is None:
        return stats.binom.cdf(needed - 1, items, correct / items) ** runs
    stable = correct - unstable // 2
    return stats.binom.cdf(needed - 1 - stable, unstable, 0.5) ** runs


def row(values):
    return "    {" + ", ".join(repr(float(v)) if isinstance(v, float) else str(v) for v in values) + "},"


def table(kind, name, rows):
    print(f"inline constexpr {kind} {name}[] = {{")
    for r in rows:
        print(row(r))
    print("};\n")


print(f"// Made by make_golden.py with scipy {scipy.__version__}, statsmodels {statsmodels.__version__}.")
print("// clang-format off\n#pragma once\n\nnamespace cupel::golden {\n")
print("struct Proportion { int successes, trials; double wilson_low, wilson_high, exact_low, exact_high; };")
table("Proportion", "kProportions", [
    (k, n, *map(float, proportion_confint(k, n, 0.05, "wilson")),
     *map(float, proportion_confint(k, n, 0.05, "beta"))) for k, n in PROPORTIONS])
print("struct Discordant { int lost, gained; double two_sided, one_sided; };")
table("Discordant", "kDiscordant", [
    (b, c, float(mcnemar([[0, b], [c, 0]], exact=True).pvalue) if b + c else 1.0,
     float(stats.binom.sf(b - 1, b + c, 0.5))) for b, c in DISCORDANT])
holm = multipletests(P_VALUES, method="holm")[1]
bh = multipletests(P_VALUES, method="fdr_bh")[1]
print("struct Adjusted { double p, holm, bh; };")
table("Adjusted", "kAdjusted", [(p, float(h), float(q)) for p, h, q in zip(P_VALUES, holm, bh)])
print("struct Floor { double score; int unstable; double fails; };  // unstable -1: binomial bound")
table("Floor", "kFloors", [(s, -1 if u is None else u, float(floor_fails(s, u))) for s, u in FLOORS])
print("// Two repeats of 1,319 items, all changes one way: 95 % interval of u, and of a run's standard")
print("// deviation in points.")
print("struct Unstable { int disagreeing; double low, high, deviation_low, deviation_high; };")
table("Unstable", "kUnstable", [
    (k, float(stats.chi2.ppf(0.025, 2 * k)), float(stats.chi2.ppf(0.975, 2 * k + 2)),
     *(float(100 / 1319 * (k * k / 2 / stats.chi2.ppf(q, 1)) ** 0.5) for q in (0.975, 0.025)))
    for k in (4, 20, 60)])
print("struct NoneOf { int pairs; double upper; };  // one-sided 95 % bound of a rate never seen")
table("NoneOf", "kNoneOf", [(k, float(stats.beta.ppf(0.95, 1, k))) for k in (3, 100, 1319)])
print("}  // namespace cupel::golden")

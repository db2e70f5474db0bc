#include "cupel/eval/probe/repeatability.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/base/hash.h"

namespace cupel {
namespace {

constexpr std::size_t kPasses = 4;
constexpr std::size_t kShown = 8;  // prompts that are described

using Passes = std::array<std::vector<Completion>, kPasses>;

constexpr std::array<std::string_view, kPasses> kPassNames = {
    "alone", "in a crowd", "alone after a crowd", "in another order"};

// One call each: a target computes what the prompts of a call share once.
std::vector<Completion> alone(Target& target, std::span<const CompletionRequest> requests) {
  std::vector<Completion> all;
  for (const CompletionRequest& request : requests) {
    all.push_back(ask_all(target, {&request, 1}, 1, "repeatability").front());
  }
  return all;
}

std::vector<Completion> in_reverse(Target& target, std::span<const CompletionRequest> requests) {
  const std::vector<CompletionRequest> reversed(requests.rbegin(), requests.rend());
  const int half = static_cast<int>((requests.size() + 1) / 2);
  auto all = ask_all(target, reversed, half, "repeatability");
  std::reverse(all.begin(), all.end());
  return all;
}

std::string describe(std::size_t prompt, std::size_t texts, std::size_t pass,
                     const FirstDifference& where, const Completion& first) {
  std::string line =
      fmt::format("Prompt {}: {} texts; {} it parts from the one alone at {} {}", prompt, texts,
                  kPassNames.at(pass), where.tokens ? "token" : "byte", where.at);
  if (where.tokens && where.at < first.margins.size() && std::isfinite(first.margins[where.at])) {
    line += fmt::format(", where the two best tokens were {:.3g} apart", first.margins[where.at]);
  }
  return line + '.';
}

}  // namespace

std::optional<FirstDifference> first_difference(const Completion& a, const Completion& b) {
  const bool tokens = !a.output_ids.empty() && !b.output_ids.empty();
  const auto parting = [](const auto& x, const auto& y) -> std::optional<std::size_t> {
    if (x == y) return std::nullopt;
    return std::mismatch(x.begin(), x.end(), y.begin(), y.end()).first - x.begin();
  };
  const auto at = tokens ? parting(a.output_ids, b.output_ids) : parting(a.text, b.text);
  if (!at) return std::nullopt;
  return FirstDifference{tokens, *at};
}

ProbeResult probe_repeatability(Target& target, std::span<const CompletionRequest> requests) {
  if (requests.empty()) throw InputError("probe repeatability", "at least one prompt", "none");
  Passes passes;
  passes[0] = alone(target, requests);
  passes[1] = ask_all(target, requests, 0, "repeatability");
  passes[2] = alone(target, requests);
  passes[3] = in_reverse(target, requests);

  ProbeResult result{ProbeKind::kRepeatability, "prompts with more than one text", {}, {}};
  std::array<std::size_t, kPasses> differing{};
  std::size_t described = 0;
  std::size_t unlike = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    std::set<std::string> texts;
    std::optional<FirstDifference> first;
    std::size_t first_pass = 0;
    for (std::size_t p = 0; p < kPasses; ++p) {
      texts.insert(passes.at(p)[i].text);
      const auto difference = first_difference(passes[0][i], passes.at(p)[i]);
      if (!difference) continue;
      ++differing.at(p);
      if (!first || difference->at < first->at) {
        first = difference;
        first_pass = p;
      }
    }
    const bool more = texts.size() > 1;
    result.items.push_back({static_cast<int>(i), hash_hex(requests[i].prompt), more ? 1.0 : 0.0});
    if (!more || !first) continue;
    ++unlike;
    if (described++ < kShown) {
      result.lines.push_back(describe(i, texts.size(), first_pass, *first, passes[0][i]));
    }
  }
  if (unlike > kShown) result.lines.push_back(fmt::format("And {} prompts more.", unlike - kShown));
  for (std::size_t p = 1; p < kPasses; ++p) {
    result.lines.push_back(fmt::format("{} of {} answers {} differ from those alone.",
                                       differing.at(p), requests.size(), kPassNames.at(p)));
  }
  return result;
}

}  // namespace cupel

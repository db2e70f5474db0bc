#include "cupel/eval/probe/probe.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/base/hash.h"

namespace cupel {
namespace {

constexpr std::array<std::pair<ProbeKind, std::string_view>, 5> kNames = {{
    {ProbeKind::kRepeatability, "repeatability"},
    {ProbeKind::kPhase, "phase"},
    {ProbeKind::kCopy, "copy"},
    {ProbeKind::kNll, "nll"},
    {ProbeKind::kStray, "stray"},
}};

}  // namespace

ProbeKind parse_probe(std::string_view name) {
  for (const auto& [kind, known] : kNames) {
    if (name == known) return kind;
  }
  throw InputError("probe", "repeatability, phase, copy, nll or stray", name);
}

std::string_view probe_name(ProbeKind kind) {
  for (const auto& [known, name] : kNames) {
    if (kind == known) return name;
  }
  return {};
}

std::vector<Completion> ask_all(Target& target, std::span<const CompletionRequest> requests,
                                int concurrency, std::string_view probe) {
  std::vector<Completion> completions(requests.size());
  target.complete(requests, concurrency, [&](std::size_t i, const Completion& completion) {
    completions.at(i) = completion;
  });
  for (std::size_t i = 0; i < completions.size(); ++i) {
    const Completion& c = completions[i];
    if (c.stop_reason != StopReason::kError) continue;
    throw InfrastructureError(fmt::format("probe {}", probe),
                              fmt::format("prompt {} got no answer ({})", i,
                                          c.error.empty() ? "never reported" : c.error));
  }
  return completions;
}

int stable_number(std::string_view name, int index, int low, int high) {
  const std::string hex = hash_hex(fmt::format("{} {}", name, index));
  const auto range = static_cast<unsigned long>(high) - static_cast<unsigned long>(low) + 1;
  return low + static_cast<int>(std::stoul(hex.substr(0, 8), nullptr, 16) % range);
}

}  // namespace cupel

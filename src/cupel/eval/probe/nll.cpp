#include "cupel/eval/probe/nll.h"

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/base/hash.h"

namespace cupel {

ProbeResult probe_nll(Target& target, std::span<const std::string> texts) {
  if (texts.empty()) throw InputError("probe nll", "at least one text", "none");
  const auto likelihoods = target.likelihoods(texts);
  ProbeResult result{ProbeKind::kNll, "nats a token", {}, {}};
  double log_probability = 0;
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const TextLikelihood& l = likelihoods.at(i);
    result.items.push_back(
        {static_cast<int>(i), hash_hex(texts[i]), -l.log_probability / l.tokens});
    log_probability += l.log_probability;
    tokens += l.tokens;
  }
  result.lines.push_back(fmt::format("{} texts, {} scored tokens; {:.6f} nats over all tokens.",
                                     texts.size(), tokens,
                                     -log_probability / static_cast<double>(tokens)));
  return result;
}

}  // namespace cupel

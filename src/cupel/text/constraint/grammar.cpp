#include "cupel/text/constraint/grammar.h"

#include <algorithm>

namespace cupel {
namespace {

constexpr std::uint32_t kNever = Grammar::kNever;

std::uint32_t saturating(std::uint64_t length) {
  return length < kNever ? static_cast<std::uint32_t>(length) : kNever;
}

}  // namespace

ExprId Grammar::add(const Expr& e) {
  exprs_.push_back(e);
  return static_cast<ExprId>(exprs_.size() - 1);
}

ExprId Grammar::literal(std::string_view bytes) {
  const auto first = static_cast<std::uint32_t>(text_.size());
  text_ += bytes;
  return add({.kind = Expr::Kind::kLiteral,
              .first = first,
              .count = static_cast<std::uint32_t>(bytes.size())});
}

ExprId Grammar::bytes(const ByteSet& set) {
  sets_.push_back(set);
  return add({.kind = Expr::Kind::kBytes, .first = static_cast<std::uint32_t>(sets_.size() - 1)});
}

ExprId Grammar::token(std::int32_t id) {
  return add({.kind = Expr::Kind::kToken, .first = static_cast<std::uint32_t>(id)});
}

ExprId Grammar::list(Expr::Kind kind, std::span<const ExprId> parts) {
  if (parts.size() == 1) return parts.front();
  const auto first = static_cast<std::uint32_t>(parts_.size());
  parts_.insert(parts_.end(), parts.begin(), parts.end());
  return add({.kind = kind, .first = first, .count = static_cast<std::uint32_t>(parts.size())});
}

ExprId Grammar::sequence(std::span<const ExprId> parts) {
  return parts.empty() ? literal("") : list(Expr::Kind::kSequence, parts);
}

ExprId Grammar::choice(std::span<const ExprId> parts) {
  return list(Expr::Kind::kChoice, parts);
}

ExprId Grammar::one_of(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return one_of(texts, 0);
}

// The texts have their first `skip` bytes in common; those are behind us.
ExprId Grammar::one_of(std::span<const std::string> sorted, std::size_t skip) {
  if (sorted.size() == 1) return literal(std::string_view(sorted.front()).substr(skip));
  std::vector<ExprId> alternatives;
  if (!sorted.empty() && sorted.front().size() == skip) {
    alternatives.push_back(literal(""));
    sorted = sorted.subspan(1);
  }
  while (!sorted.empty()) {
    const std::string& lowest = sorted.front();
    const auto end = std::find_if(sorted.begin(), sorted.end(), [&](const std::string& text) {
      return text[skip] != lowest[skip];
    });
    const auto group = sorted.first(static_cast<std::size_t>(end - sorted.begin()));
    // What the first and the last have in common, all have.
    const auto common = static_cast<std::size_t>(
        std::mismatch(lowest.begin(), lowest.end(), group.back().begin(), group.back().end())
            .first -
        lowest.begin());
    const ExprId beginning = literal(std::string_view(lowest).substr(skip, common - skip));
    alternatives.push_back(group.size() == 1 ? beginning
                                             : sequence({beginning, one_of(group, common)}));
    sorted = sorted.subspan(group.size());
  }
  return choice(alternatives);
}

ExprId Grammar::repeat(ExprId body, std::uint32_t min, std::uint32_t max) {
  if (max == 0) return literal("");
  if (min == 1 && max == 1) return body;
  return add({.kind = Expr::Kind::kRepeat, .first = body, .min = min, .max = max});
}

ExprId Grammar::declare() {
  return add({.kind = Expr::Kind::kRule, .first = 0});
}

void Grammar::define(ExprId rule, ExprId body) {
  exprs_[rule].first = body;
}

bool Grammar::uses_token(std::int32_t id) const {
  return std::any_of(exprs_.begin(), exprs_.end(), [&](const Expr& e) {
    return e.kind == Expr::Kind::kToken && e.first == static_cast<std::uint32_t>(id);
  });
}

std::vector<std::uint32_t> Grammar::least_lengths() const {
  std::vector<std::uint32_t> least(exprs_.size(), kNever);
  const auto of = [&](const Expr& e) -> std::uint32_t {
    switch (e.kind) {
      case Expr::Kind::kLiteral:
        return e.count;
      case Expr::Kind::kBytes:
        return sets_[e.first].any() ? 1 : kNever;
      case Expr::Kind::kToken:
        return 1;
      case Expr::Kind::kSequence: {
        std::uint64_t sum = 0;
        for (const ExprId part : parts(e)) {
          if (least[part] == kNever) return kNever;
          sum += least[part];
        }
        return saturating(sum);
      }
      case Expr::Kind::kChoice: {
        std::uint32_t best = kNever;
        for (const ExprId part : parts(e)) best = std::min(best, least[part]);
        return best;
      }
      case Expr::Kind::kRepeat:
        if (e.min == 0) return 0;
        return least[e.first] == kNever ? kNever
                                        : saturating(std::uint64_t{e.min} * least[e.first]);
      case Expr::Kind::kRule:
        return least[e.first];
    }
    return kNever;
  };
  // Parts come before wholes but for rules, each level of which takes one more round.
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t id = 0; id < exprs_.size(); ++id) {
      const std::uint32_t now = of(exprs_[id]);
      changed = changed || now < least[id];
      least[id] = std::min(now, least[id]);
    }
  }
  return least;
}

}  // namespace cupel

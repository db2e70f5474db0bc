#include "cupel/text/constraint/automaton.h"

#include <algorithm>

namespace cupel {
namespace {

constexpr std::uint32_t kNever = Grammar::kNever;
// Transitions kept as a list before a table is made of them.
constexpr std::size_t kFew = 8;

std::uint32_t add(std::uint32_t a, std::uint32_t b) {
  return a >= kNever - b ? kNever : a + b;
}

bool is_plain_byte(std::size_t byte) {
  return byte >= 0x20 && byte != '"' && byte != '\\';
}

}  // namespace

std::size_t GrammarAutomaton::WaysHash::operator()(const std::vector<CellId>& ways) const {
  std::size_t h = ways.size();
  for (const CellId way : ways) h = ((h ^ way) * 0x9e3779b97f4a7c15u) ^ (h >> 31);
  return h;
}

GrammarAutomaton::GrammarAutomaton(Grammar grammar)
    : grammar_(std::move(grammar)), least_(grammar_.least_lengths()) {
  clear();
}

void GrammarAutomaton::clear() {
  cells_.assign(1, {0, 0, 0, 0});
  cell_ids_.clear();
  configs_.clear();
  configs_.emplace_back();  // kDead
  config_ids_.clear();
  begin();
  enter(grammar_.root(), 0, 0);
  expand();
  start_ = finish();
}

std::uint32_t GrammarAutomaton::rest_length(ExprId id, std::uint32_t at) const {
  const Expr& e = grammar_[id];
  switch (e.kind) {
    case Expr::Kind::kLiteral:
      return e.count - at;
    case Expr::Kind::kSequence: {
      std::uint32_t sum = 0;
      for (const ExprId part : grammar_.parts(e).subspan(at)) sum = add(sum, least_[part]);
      return sum;
    }
    case Expr::Kind::kRepeat: {
      if (at >= e.min) return 0;
      const std::uint64_t sum = std::uint64_t{e.min - at} * least_[e.first];
      return least_[e.first] == kNever || sum >= kNever ? kNever : static_cast<std::uint32_t>(sum);
    }
    default:
      return least_[id];
  }
}

GrammarAutomaton::Cell GrammarAutomaton::cell_at(ExprId expr, std::uint32_t at, CellId next) const {
  return {expr, at, next, add(rest_length(expr, at), cells_[next].least)};
}

GrammarAutomaton::CellId GrammarAutomaton::cell(ExprId expr, std::uint32_t at, CellId next) {
  const Cell key = cell_at(expr, at, next);
  const auto [found, added] = cell_ids_.emplace(key, static_cast<CellId>(cells_.size()));
  if (added) cells_.push_back(key);
  return found->second;
}

void GrammarAutomaton::begin() {
  work_.clear();
  seen_.clear();
  ways_.clear();
  plain_cells_.clear();
  complete_ = false;
}

void GrammarAutomaton::enter(ExprId expr, std::uint32_t at, CellId next) {
  const Cell entered = cell_at(expr, at, next);
  // What can never be completed is no way to go on.
  if (entered.least != kNever) work_.push_back(entered);
}

void GrammarAutomaton::resume(CellId id) {
  if (id == 0) {
    complete_ = true;
  } else {
    work_.push_back(cells_[id]);
  }
}

// Depth first, so that ways come in the order of the alternatives.
void GrammarAutomaton::expand() {
  while (!work_.empty()) {
    const Cell top = work_.back();
    work_.pop_back();
    if (!seen_.insert(top).second) continue;
    const Expr& e = grammar_[top.expr];
    switch (e.kind) {
      case Expr::Kind::kLiteral:
        if (top.at == e.count) {
          resume(top.next);
          break;
        }
        [[fallthrough]];
      case Expr::Kind::kBytes:
      case Expr::Kind::kToken:
        ways_.push_back(cell(top.expr, top.at, top.next));
        break;
      case Expr::Kind::kSequence: {
        const auto parts = grammar_.parts(e);
        const bool last = top.at + 1 == parts.size();
        enter(parts[top.at], 0, last ? top.next : cell(top.expr, top.at + 1, top.next));
        break;
      }
      case Expr::Kind::kChoice: {
        const auto parts = grammar_.parts(e);
        for (auto part = parts.rbegin(); part != parts.rend(); ++part) enter(*part, 0, top.next);
        break;
      }
      case Expr::Kind::kRepeat:
        expand_repeat(top.expr, top.at, top.next);
        break;
      case Expr::Kind::kRule:
        enter(e.first, 0, top.next);
        break;
    }
  }
}

void GrammarAutomaton::expand_repeat(ExprId id, std::uint32_t at, CellId next) {
  const Expr& e = grammar_[id];
  // A body that may be empty can make up any count.
  const std::uint32_t min = least_[e.first] == 0 ? 0 : e.min;
  if (at >= min) resume(next);
  if (at >= e.max) return;
  // Beyond the minimum an unbounded repetition no longer counts.
  const std::uint32_t taken = e.max == Grammar::kUnbounded ? std::min(at + 1, e.min) : at + 1;
  const CellId after = cell(id, taken, next);
  if (grammar_[e.first].plain) {
    plain_cells_.push_back({.after = after,
                            .room = e.max == Grammar::kUnbounded ? Grammar::kUnbounded : e.max - at,
                            .least = add(rest_length(id, at), cells_[next].least),
                            .closed = starts_closed(next)});
  }
  enter(e.first, 0, after);
}

bool GrammarAutomaton::closes(ExprId id, std::uint32_t at) const {
  const Expr& e = grammar_[id];
  return e.kind == Expr::Kind::kLiteral && at < e.count &&
         !is_plain_byte(static_cast<std::uint8_t>(grammar_.text(e)[at]));
}

bool GrammarAutomaton::starts_closed(CellId id) const {
  const Cell& cell = cells_[id];
  if (id == 0) return true;
  const Expr& e = grammar_[cell.expr];
  if (e.kind == Expr::Kind::kSequence) return closes(grammar_.parts(e)[cell.at], 0);
  return closes(cell.expr, cell.at);
}

void GrammarAutomaton::set_plain(Config& config) const {
  const PlainCell* best = nullptr;
  for (const PlainCell& cell : plain_cells_) {
    if (best == nullptr || cell.room > best->room) best = &cell;
  }
  if (best == nullptr) return;
  config.plain = {.room = best->room, .least = best->least, .alone = best->closed};
  for (const CellId way : config.ways) {
    const Cell& cell = cells_[way];
    // A code point's first byte leads to `after` itself or by way of its other bytes.
    const bool own = cell.next == best->after || cells_[cell.next].next == best->after;
    if (!own && !closes(cell.expr, cell.at)) config.plain.alone = false;
  }
}

GrammarAutomaton::ConfigId GrammarAutomaton::finish() {
  if (ways_.size() > kMaxWays) {
    ways_.resize(kMaxWays);
    plain_cells_.clear();  // its ways may be among those given up
  }
  if (ways_.empty() && !complete_) return kDead;
  std::vector<CellId> key = ways_;
  if (complete_) key.push_back(0);
  const auto [found, added] =
      config_ids_.emplace(std::move(key), static_cast<ConfigId>(configs_.size()));
  if (!added) return found->second;
  Config& config = configs_.emplace_back();
  config.ways = ways_;
  config.complete = complete_;
  if (complete_) config.least = 0;
  for (const CellId way : ways_) config.least = std::min(config.least, cells_[way].least);
  set_plain(config);
  return found->second;
}

GrammarAutomaton::ConfigId GrammarAutomaton::make_step(ConfigId from, std::uint8_t byte) {
  begin();
  // The list of ways does not move while cells and configurations are added.
  const std::vector<CellId>& ways = configs_[from].ways;
  for (const CellId way : ways) {
    const Cell cell = cells_[way];
    const Expr& e = grammar_[cell.expr];
    if (e.kind == Expr::Kind::kLiteral) {
      if (static_cast<std::uint8_t>(grammar_.text(e)[cell.at]) != byte) continue;
      enter(cell.expr, cell.at + 1, cell.next);
    } else if (e.kind == Expr::Kind::kBytes && grammar_.byte_set(e)[byte]) {
      resume(cell.next);
    }
    expand();
  }
  const ConfigId to = finish();
  Config& config = configs_[from];
  if (!config.table && config.few.size() < kFew) {
    config.few.emplace_back(byte, to);
    return to;
  }
  if (!config.table) {
    config.table = std::make_unique<std::array<ConfigId, 256>>();
    config.table->fill(kUnknown);
    for (const auto& [known, target] : config.few) (*config.table)[known] = target;
    config.few.clear();
  }
  (*config.table)[byte] = to;
  return to;
}

GrammarAutomaton::ConfigId GrammarAutomaton::take(ConfigId from, std::int32_t token) {
  begin();
  for (const CellId way : configs_[from].ways) {
    const Cell cell = cells_[way];
    const Expr& e = grammar_[cell.expr];
    if (e.kind != Expr::Kind::kToken || e.first != static_cast<std::uint32_t>(token)) continue;
    resume(cell.next);
    expand();
  }
  return finish();
}

std::vector<std::int32_t> GrammarAutomaton::added_tokens(ConfigId id) const {
  std::vector<std::int32_t> tokens;
  for (const CellId way : configs_[id].ways) {
    const Expr& e = grammar_[cells_[way].expr];
    if (e.kind == Expr::Kind::kToken) tokens.push_back(static_cast<std::int32_t>(e.first));
  }
  return tokens;
}

std::uint32_t GrammarAutomaton::shortest_symbol(ConfigId id) const {
  const Config& config = configs_[id];
  const auto way = std::find_if(config.ways.begin(), config.ways.end(), [&](CellId candidate) {
    return cells_[candidate].least == config.least;
  });
  const Cell& cell = cells_[*way];
  const Expr& e = grammar_[cell.expr];
  if (e.kind == Expr::Kind::kLiteral) {
    return static_cast<std::uint8_t>(grammar_.text(e)[cell.at]);
  }
  if (e.kind == Expr::Kind::kToken) return kTokenSymbol + e.first;
  return static_cast<std::uint32_t>(grammar_.byte_set(e)._Find_first());
}

}  // namespace cupel

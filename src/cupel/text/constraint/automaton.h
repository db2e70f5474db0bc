// A grammar as an automaton over bytes and added tokens, made as far as it is used.
//
// A configuration is the set of ways in which what came so far can go on. A way is a list of cells,
// each an expression with how far it has come; cells and configurations are interned, so that equal
// ones are one and the same and every transition is looked up only once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cupel/text/constraint/grammar.h"

namespace cupel {

class GrammarAutomaton {
 public:
  using ConfigId = std::uint32_t;
  static constexpr ConfigId kDead = 0;
  // Ways that a configuration keeps; of more the later alternatives are given up.
  static constexpr std::size_t kMaxWays = 1024;

  explicit GrammarAutomaton(Grammar grammar);

  const Grammar& grammar() const { return grammar_; }
  ConfigId start() const { return start_; }
  std::size_t size() const { return configs_.size(); }
  // Forgets every configuration but kDead and the start: ids held elsewhere are void.
  void clear();

  // kDead if nothing goes on with it.
  ConfigId step(ConfigId from, std::uint8_t byte) {
    const Config& config = configs_[from];
    if (config.table) {
      const ConfigId to = (*config.table)[byte];
      if (to != kUnknown) return to;
    } else {
      for (const auto& [known, to] : config.few) {
        if (known == byte) return to;
      }
    }
    return make_step(from, byte);
  }
  ConfigId take(ConfigId from, std::int32_t token);
  std::vector<std::int32_t> added_tokens(ConfigId id) const;  // that may come next

  bool complete(ConfigId id) const { return configs_[id].complete; }
  // Bytes of the shortest completion; of kDead: Grammar::kNever.
  std::uint32_t least(ConfigId id) const { return configs_[id].least; }
  // The first symbol of the shortest completion of an incomplete configuration: a byte, or
  // kTokenSymbol + an added token.
  std::uint32_t shortest_symbol(ConfigId id) const;
  static constexpr std::uint32_t kTokenSymbol = 256;

  // How a configuration stands in a repetition of plain code points (Grammar::mark_plain).
  struct Plain {
    std::uint32_t room = 0;   // of them may follow; kUnbounded
    std::uint32_t least = 0;  // bytes to complete after any number of them, at most
    bool alone = false;       // no other way goes on with a byte of a plain token
  };
  const Plain& plain(ConfigId id) const { return configs_[id].plain; }

 private:
  using CellId = std::uint32_t;  // 0: the end of the list
  static constexpr ConfigId kUnknown = 0xffffffff;

  struct Cell {
    ExprId expr;
    std::uint32_t at;  // bytes of a literal, parts of a sequence, repetitions taken
    CellId next;
    std::uint32_t least;
    bool operator==(const Cell& o) const { return expr == o.expr && at == o.at && next == o.next; }
  };
  struct CellHash {
    std::size_t operator()(const Cell& c) const {
      std::size_t h = (std::size_t{c.expr} << 32 | c.next) * 0x9e3779b97f4a7c15u;
      h = (h ^ h >> 29 ^ c.at) * 0xbf58476d1ce4e5b9u;
      return h ^ h >> 32;
    }
  };
  struct Config {
    std::vector<CellId> ways;  // what each waits for: a literal, bytes or a token
    bool complete = false;
    std::uint32_t least = Grammar::kNever;
    Plain plain;
    // A handful of transitions, then a table.
    std::vector<std::pair<std::uint8_t, ConfigId>> few;
    std::unique_ptr<std::array<ConfigId, 256>> table;
  };
  struct WaysHash {
    std::size_t operator()(const std::vector<CellId>& ways) const;
  };

  ConfigId make_step(ConfigId from, std::uint8_t byte);
  Cell cell_at(ExprId expr, std::uint32_t at, CellId next) const;
  CellId cell(ExprId expr, std::uint32_t at, CellId next);  // its number
  std::uint32_t rest_length(ExprId expr, std::uint32_t at) const;

  // A configuration in the making: begin, any number of enter and resume, then finish.
  void begin();
  void enter(ExprId expr, std::uint32_t at, CellId next);
  void resume(CellId cell);
  void expand();  // until every way waits for something
  void expand_repeat(ExprId id, std::uint32_t at, CellId next);
  ConfigId finish();
  void set_plain(Config& config) const;
  // Whether it begins with a byte that no plain token has.
  bool closes(ExprId expr, std::uint32_t at) const;
  bool starts_closed(CellId cell) const;

  Grammar grammar_;
  std::vector<std::uint32_t> least_;  // of expressions
  std::vector<Cell> cells_;
  std::unordered_map<Cell, CellId, CellHash> cell_ids_;
  std::vector<Config> configs_;
  std::unordered_map<std::vector<CellId>, ConfigId, WaysHash> config_ids_;
  ConfigId start_ = kDead;

  // Of the configuration in the making.
  std::vector<Cell> work_;
  std::unordered_set<Cell, CellHash> seen_;
  std::vector<CellId> ways_;
  bool complete_ = false;
  struct PlainCell {
    CellId after;  // where a plain code point leads
    std::uint32_t room, least;
    bool closed;  // what follows the repetition begins with a byte that no plain token has
  };
  std::vector<PlainCell> plain_cells_;
};

}  // namespace cupel

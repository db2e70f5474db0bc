#include "cupel/text/constraint/grammar_constraint.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/text/constraint/automaton.h"

namespace cupel {
namespace {

using ConfigId = GrammarAutomaton::ConfigId;
using Mask = std::vector<std::uint64_t>;

// Configurations, and bytes of masks, beyond which all are forgotten and made anew.
constexpr std::size_t kMaxConfigs = 32768;
constexpr std::size_t kMaxMaskBytes = std::size_t{64} << 20;

void set_bit(Mask& mask, std::int32_t id) {
  mask[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (id % 64);
}

// Masks of a grammar's configurations, shared by the outputs that follow it.
class MaskCache {
 public:
  MaskCache(Grammar grammar, std::shared_ptr<const ConstraintVocabulary> vocabulary)
      : automaton_(std::move(grammar)), vocabulary_(std::move(vocabulary)) {}

  // Every call is made with this held.
  std::mutex& mutex() { return mutex_; }
  GrammarAutomaton& automaton() { return automaton_; }
  const Grammar& grammar() const { return automaton_.grammar(); }
  const ConstraintVocabulary& vocabulary() const { return *vocabulary_; }

  // Where a token leads.
  ConfigId advance(ConfigId from, std::int32_t id) {
    if (!vocabulary_->has(id)) return automaton_.take(from, id);
    for (const char c : vocabulary_->bytes(id)) {
      from = automaton_.step(from, static_cast<std::uint8_t>(c));
    }
    return from;
  }

  // The tokens of the shortest completion.
  std::vector<std::int32_t> shortest_tokens(ConfigId id) {
    std::vector<std::int32_t> tokens;
    std::string text;
    const auto spell = [&] {
      const auto spelled = vocabulary_->fewest_tokens(text);
      tokens.insert(tokens.end(), spelled.begin(), spelled.end());
      text.clear();
    };
    while (!automaton_.complete(id)) {
      const std::uint32_t symbol = automaton_.shortest_symbol(id);
      if (symbol < GrammarAutomaton::kTokenSymbol) {
        text += static_cast<char>(symbol);
        id = automaton_.step(id, static_cast<std::uint8_t>(symbol));
      } else {
        spell();
        tokens.push_back(static_cast<std::int32_t>(symbol - GrammarAutomaton::kTokenSymbol));
        id = automaton_.take(id, tokens.back());
      }
    }
    spell();
    return tokens;
  }

  // Into `mask`: the tokens of `id` after which fewer than `room` tokens complete. False if some
  // were left out for that.
  bool fill(ConfigId id, std::size_t room, Mask& mask) {
    Entry& entry = this->entry(id);
    // Every byte is a token: no completion has more tokens than bytes.
    if (entry.most_bytes < room) {
      mask = entry.mask;
      return true;
    }
    if (!entry.most_tokens) {
      std::size_t most = 0;
      walk(id, true,
           [&](const auto&, ConfigId after) { most = std::max(most, shortest_length(after)); });
      entry.most_tokens = most;
    }
    if (*entry.most_tokens < room) {
      mask = entry.mask;
      return true;
    }
    mask.assign(vocabulary_->words(), 0);
    walk(id, true, [&](const auto& tokens, ConfigId after) {
      if (shortest_length(after) >= room) return;
      for (const std::int32_t token : tokens) set_bit(mask, token);
    });
    return false;
  }

  // Rises when all configurations are forgotten; ids of an earlier one are void.
  std::uint64_t epoch() const { return epoch_; }
  void forget_if_full() {
    if (automaton_.size() < kMaxConfigs &&
        entries_.size() * vocabulary_->words() * sizeof(std::uint64_t) < kMaxMaskBytes) {
      return;
    }
    automaton_.clear();
    entries_.clear();
    lengths_.clear();
    ++epoch_;
  }

 private:
  struct Entry {
    Mask mask;                               // whatever room there is
    std::size_t most_bytes = 0;              // the longest completion after a token of it
    std::optional<std::size_t> most_tokens;  // the same in tokens, once it was needed
  };

  std::size_t shortest_length(ConfigId id) {
    const auto [found, added] = lengths_.try_emplace(id, 0);
    if (added) found->second = shortest_tokens(id).size();
    return found->second;
  }

  Entry& entry(ConfigId id) {
    const auto [found, added] = entries_.try_emplace(id);
    Entry& entry = found->second;
    if (!added) return entry;
    entry.mask.assign(vocabulary_->words(), 0);
    const GrammarAutomaton::Plain plain = automaton_.plain(id);
    bool walk_plain = true;
    if (plain.room > 0) {
      const auto table = vocabulary_->plain_mask(plain.room);
      std::copy(table.begin(), table.end(), entry.mask.begin());
      entry.most_bytes = plain.least;
      walk_plain = !plain.alone && plain.room < vocabulary_->longest_plain();
    }
    walk(id, walk_plain, [&](const auto& tokens, ConfigId after) {
      for (const std::int32_t token : tokens) set_bit(entry.mask, token);
      entry.most_bytes = std::max<std::size_t>(entry.most_bytes, automaton_.least(after));
    });
    return entry;
  }

  // Calls visit(tokens, where they lead) for what can come next: the tokens of each spelling.
  // Without `plain`, those of plain tokens may be left out.
  template <typename F>
  void walk(ConfigId from, bool plain, const F& visit) {
    const auto nodes = vocabulary_->nodes();
    path_.resize(vocabulary_->longest() + 1);
    path_[0] = from;
    for (std::size_t at = 0; at < nodes.size();) {
      const ConstraintVocabulary::Node& node = nodes[at];
      const bool wanted = plain || node.has_other;
      const ConfigId to =
          wanted ? automaton_.step(path_[node.depth - 1U], node.byte) : GrammarAutomaton::kDead;
      if (to == GrammarAutomaton::kDead) {
        at = node.skip;
        continue;
      }
      path_[node.depth] = to;
      if (node.token_count > 0) visit(vocabulary_->tokens(node), to);
      ++at;
    }
    for (const std::int32_t token : automaton_.added_tokens(from)) {
      visit(std::span(&token, 1), automaton_.take(from, token));
    }
  }

  std::mutex mutex_;
  GrammarAutomaton automaton_;
  std::shared_ptr<const ConstraintVocabulary> vocabulary_;
  std::unordered_map<ConfigId, Entry> entries_;
  std::unordered_map<ConfigId, std::size_t> lengths_;
  std::vector<ConfigId> path_;
  std::uint64_t epoch_ = 0;
};

class GrammarState : public ConstraintState {
 public:
  explicit GrammarState(MaskCache& cache) : cache_(cache) {
    const std::scoped_lock lock(cache_.mutex());
    epoch_ = cache_.epoch();
    config_ = cache_.automaton().start();
  }

  std::span<const std::uint64_t> allowed(std::size_t room) override {
    const std::scoped_lock lock(cache_.mutex());
    cache_.forget_if_full();
    catch_up();
    if (room == 0 || config_ == GrammarAutomaton::kDead) return {};
    if (cache_.fill(config_, room, mask_)) return mask_;
    // The shortest completion goes on: of two as short the one begun stays, lest the other turn out
    // longer in tokens.
    std::vector<std::int32_t> shortest = cache_.shortest_tokens(config_);
    if (!planned_ || shortest.size() < plan_.size()) {
      std::reverse(shortest.begin(), shortest.end());
      plan_ = std::move(shortest);
      planned_ = true;
    }
    if (!plan_.empty()) set_bit(mask_, plan_.back());
    return mask_;
  }

  void advance(std::int32_t id) override {
    const std::scoped_lock lock(cache_.mutex());
    catch_up();
    config_ = cache_.advance(config_, id);
    taken_.push_back(id);
    planned_ = planned_ && !plan_.empty() && plan_.back() == id;
    if (planned_) plan_.pop_back();
  }

  bool can_end() const override {
    const std::scoped_lock lock(cache_.mutex());
    catch_up();
    return cache_.automaton().complete(config_);
  }

 private:
  void catch_up() const {
    if (epoch_ == cache_.epoch()) return;
    epoch_ = cache_.epoch();
    config_ = cache_.automaton().start();
    for (const std::int32_t id : taken_) config_ = cache_.advance(config_, id);
  }

  MaskCache& cache_;
  mutable std::uint64_t epoch_ = 0;
  mutable ConfigId config_ = GrammarAutomaton::kDead;  // of epoch_
  std::vector<std::int32_t> taken_;
  Mask mask_;
  bool planned_ = false;
  std::vector<std::int32_t> plan_;  // last first: a completion from here on
};

class GrammarConstraint : public TokenConstraint {
 public:
  GrammarConstraint(Grammar grammar, std::shared_ptr<const ConstraintVocabulary> vocabulary)
      : cache_(std::move(grammar), std::move(vocabulary)),
        shortest_(cache_.shortest_tokens(cache_.automaton().start()).size()) {}

  std::unique_ptr<ConstraintState> start() const override {
    return std::make_unique<GrammarState>(cache_);
  }
  std::size_t shortest() const override { return shortest_; }
  bool uses(std::int32_t id) const override {
    return cache_.vocabulary().has(id) || cache_.grammar().uses_token(id);
  }

 private:
  mutable MaskCache cache_;  // behind its mutex
  std::size_t shortest_;
};

}  // namespace

std::shared_ptr<const TokenConstraint> make_constraint(
    Grammar grammar, std::shared_ptr<const ConstraintVocabulary> vocabulary,
    std::string_view where) {
  const std::uint32_t least = grammar.least_lengths()[grammar.root()];
  if (least == Grammar::kNever) {
    throw InputError(where, "a form that some finite text has", "one that none has");
  }
  if (least > kMaxShortestBytes) {
    throw InputError(where, fmt::format("a shortest output of at most {} bytes", kMaxShortestBytes),
                     std::to_string(least));
  }
  return std::make_shared<GrammarConstraint>(std::move(grammar), std::move(vocabulary));
}

}  // namespace cupel

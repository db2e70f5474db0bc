// Arbitrary JSON as a schema; of those that compile, a walk through the masks.
#include <cstdint>
#include <memory>
#include <string_view>

#include "text/small_tokenizer.h"
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"
#include "cupel/text/constraint/grammar_constraint.h"
#include "cupel/text/constraint/json_schema.h"

namespace {

void require(bool holds) {
  if (!holds) __builtin_trap();
}

const std::shared_ptr<const cupel::ConstraintVocabulary>& vocabulary() {
  static const auto made = std::make_shared<const cupel::ConstraintVocabulary>(cupel::Tokenizer(
      cupel::test::small_tokenizer({{"a", "b"}, {"\"", ":"}, {"{", "\""}}).dump(), "built-in"));
  return made;
}

// Every output must end within its limit, whatever is chosen.
void walk(const cupel::TokenConstraint& constraint, std::uint64_t seed) {
  const auto state = constraint.start();
  std::string text;
  for (std::size_t room = constraint.shortest() + seed % 64;; --room) {
    const auto mask = state->allowed(room);
    std::vector<std::int32_t> ids;
    for (std::size_t id = 0; id < mask.size() * 64; ++id) {
      if (mask[id / 64] >> (id % 64) & 1) ids.push_back(static_cast<std::int32_t>(id));
    }
    if (ids.empty() || (state->can_end() && seed % 5 == 0)) break;
    require(room > 0);
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const std::int32_t id = ids[(seed >> 33) % ids.size()];
    text += vocabulary()->bytes(id);
    state->advance(id);
  }
  require(state->can_end());
  require(nlohmann::json::accept(text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto schema = nlohmann::ordered_json::parse(input, nullptr, false);
  if (schema.is_discarded()) return 0;
  try {
    cupel::Grammar grammar;
    grammar.set_root(cupel::add_json_schema(grammar, schema, "input"));
    const auto constraint = cupel::make_constraint(std::move(grammar), vocabulary(), "input");
    // The longest ones take their time.
    if (constraint->shortest() < 1000) walk(*constraint, size);
  } catch (const cupel::InputError&) {
    // The only way to refuse a schema.
  }
  return 0;
}

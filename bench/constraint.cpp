// What a JSON schema costs: whole decode steps of a tiny model, and masks of a large vocabulary.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks.h"
#include "measure.h"
#include "random_matrix.h"
#include "text/random_text.h"
#include "text/small_tokenizer.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/engine/engine.h"
#include "cupel/text/constraint/grammar_constraint.h"
#include "cupel/text/constraint/json_schema.h"

namespace cupel::bench {
namespace {

using Json = nlohmann::ordered_json;
using Vocabulary = std::shared_ptr<const ConstraintVocabulary>;

// A list of records that fills any limit: names, numbers, choices, nested lists.
const Json& records() {
  static const Json schema = Json::parse(R"({"type":"array","minItems":1,"items":{"type":"object",
    "properties":{"name":{"type":"string","minLength":1,"maxLength":40},"city":{"type":"string"},
      "kind":{"enum":["person","company","public body"]},"age":{"type":"integer","minimum":0,"maximum":150},
      "scores":{"type":"array","items":{"type":"number"},"maxItems":4}},
    "required":["name","city","kind","age","scores"],"additionalProperties":false}})");
  return schema;
}

std::shared_ptr<const TokenConstraint> compile(const Vocabulary& vocabulary) {
  Grammar grammar;
  grammar.set_root(add_json_schema(grammar, records(), "records"));
  return make_constraint(std::move(grammar), vocabulary, "records");
}

// Tokens of lengths and kinds as large vocabularies have them: words with and without a space, wide
// characters and parts of them, numbers, signs of JSON and of programs.
Vocabulary large_vocabulary(std::size_t size) {
  nlohmann::json file = test::small_tokenizer();
  auto& ids = file["model"]["vocab"];
  test::RandomText random(3);
  const std::vector<std::string_view> syllables = {
      "a",   "e",   "in",  "on",  "er", "th", "st", "re", "al", "ing", "tion",
      "com", "pro", "s",   "ly",  "t",  "n",  "d",  "m",  "l",  "k",   "b",
      "ver", "der", "sch", "ent", "ou", "qu", "z",  "A",  "S",  "T",   "Re"};
  const std::vector<std::string_view> signs = {"\"", "{", "}", "[",  "]",  ":", ",",
                                               "(",  ")", ";", "\\", "\n", " ", "  ",
                                               ".",  "/", "=", "-",  "_",  "<", ">"};
  std::vector<std::string_view> digits = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  while (ids.size() < size) {
    std::string bytes;
    const std::size_t kind = random.below(100);
    if (kind < 60) {
      bytes = (kind < 35 ? " " : "") + random.pick(syllables, 1 + random.below(5));
    } else if (kind < 90) {
      for (std::size_t i = 1 + random.below(3); i-- > 0;) {
        bytes += test::to_utf8(static_cast<char32_t>(0x4E00 + random.below(0x5000)));
      }
      if (kind < 63) bytes.pop_back();
    } else if (kind < 97) {
      bytes = random.pick(signs, 1 + random.below(4)) +
              (random.below(3) == 0 ? random.pick(syllables, 1) : "");
    } else {
      bytes = random.pick(digits, 1 + random.below(4));
    }
    std::string text;
    for (const char c : bytes) text += byte_to_alphabet(static_cast<std::uint8_t>(c));
    if (!ids.contains(text)) ids[text] = ids.size();
  }
  return std::make_shared<const ConstraintVocabulary>(Tokenizer(file.dump(), "made"));
}

// `concurrency` requests of `tokens` tokens each.
double tokens_per_second(Engine& engine, const std::shared_ptr<const TokenConstraint>& constraint,
                         int concurrency, int tokens) {
  std::vector<GenerationRequest> requests(static_cast<std::size_t>(concurrency));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt_ids = {0, static_cast<std::int32_t>(20 + i)};
    requests[i].max_new_tokens = tokens;
    requests[i].constraint = constraint;
    requests[i].ignore_eos = constraint == nullptr;
    requests[i].sampling = {.temperature = 1, .seed = i};
  }
  std::size_t produced = 0;
  const double time = seconds([&] {
    engine.generate(requests, 0,
                    [&](std::size_t, const Generation& g) { produced += g.output_ids.size(); });
  });
  return static_cast<double>(produced) / time;
}

void decode(const Settings& s) {
  EngineOptions options;
  options.model = s.load == "random" ? "models/tiny-v4-0731" : s.load;
  options.threads = s.pool->threads();
  options.prefix_cache = false;
  Engine engine(options);
  const auto vocabulary = std::make_shared<const ConstraintVocabulary>(engine.tokenizer());
  fmt::print("decode of {}, {} threads: time a token with the schema over without\n",
             options.model.string(), s.pool->threads());
  for (const int concurrency : {1, 16}) {
    constexpr int kTokens = 400;
    std::vector<double> cold, warm;
    const auto kept = compile(vocabulary);
    tokens_per_second(engine, kept, concurrency, kTokens);
    for (int i = 0; i < s.repeats; ++i) {
      const double plain = tokens_per_second(engine, nullptr, concurrency, kTokens);
      warm.push_back(plain / tokens_per_second(engine, kept, concurrency, kTokens));
      cold.push_back(plain / tokens_per_second(engine, compile(vocabulary), concurrency, kTokens));
    }
    fmt::print("  {:2} requests: {:.3f}; {:.3f} with masks made anew\n", concurrency, median(warm),
               median(cold));
  }
}

void masks(const Settings& s) {
  constexpr std::size_t kVocabulary = 129280, kSteps = 200;
  Vocabulary vocabulary;
  const double making = seconds([&] { vocabulary = large_vocabulary(kVocabulary); });
  const Sampler sampler(std::vector<bool>(kVocabulary, true));
  const auto logits = random_floats(kVocabulary);
  const auto sample = [&] {
    for (std::size_t i = 0; i < kSteps; ++i) sampler.sample(logits, {}, i);
  };
  // Follows random allowed tokens up to the limit or as many steps; seconds a mask.
  double worst = 0;
  const auto follow = [&](const TokenConstraint& constraint, std::uint64_t seed,
                          std::size_t limit) {
    const auto state = constraint.start();
    double time = 0;
    std::size_t steps = 0;
    for (; steps < std::min(limit, kSteps); ++steps) {
      std::span<const std::uint64_t> mask;
      const double one = seconds([&] { mask = state->allowed(limit - steps); });
      time += one;
      worst = std::max(worst, one);
      std::vector<std::int32_t> ids;
      for (std::size_t id = 0; id < mask.size() * 64; ++id) {
        if (mask[id / 64] >> (id % 64) & 1) ids.push_back(static_cast<std::int32_t>(id));
      }
      if (ids.empty()) break;
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      state->advance(ids[(seed >> 33) % ids.size()]);
    }
    return time / static_cast<double>(steps);
  };
  constexpr std::size_t kFar = 4000;
  std::vector<double> cold, warm, near, plain;
  double compiling = 0;
  for (int i = 0; i < s.repeats; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    std::shared_ptr<const TokenConstraint> constraint;
    compiling += seconds([&] { constraint = compile(vocabulary); });
    cold.push_back(follow(*constraint, seed, kFar));
    warm.push_back(follow(*constraint, seed, kFar));
    plain.push_back(seconds(sample) / static_cast<double>(kSteps));
  }
  const double worst_far = std::exchange(worst, 0);
  for (int i = 0; i < s.repeats; ++i) {
    const auto constraint = compile(vocabulary);
    near.push_back(follow(*constraint, static_cast<std::uint64_t>(i), constraint->shortest() + 5));
  }
  fmt::print(
      "masks of {} made tokens, {} steps; {:.1f} s to make the vocabulary, {:.2f} ms to compile\n",
      kVocabulary, kSteps, making, compiling / s.repeats * 1e3);
  fmt::print("  greedy choice without a schema: {:.0f} us a step\n", median(plain) * 1e6);
  const auto row = [&](const char* name, std::span<const double> times) {
    fmt::print("  mask {}: {:.1f} us, {:.3f} of the choice\n", name, median(times) * 1e6,
               median(times) / median(plain));
  };
  row("when first needed", cold);
  row("when known", warm);
  row("with a limit 5 tokens above the shortest, all new", near);
  fmt::print("  the longest: {:.1f} ms, {:.1f} ms with that limit\n", worst_far * 1e3, worst * 1e3);
}

}  // namespace

void constraint(const Settings& s) {
  decode(s);
  masks(s);
}

}  // namespace cupel::bench

// What a JSON schema costs: whole decode steps of a tiny model, and masks of a large vocabulary.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
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
  fmt::print("decode of {}, {} tokens, {} threads: time a token with the schema over without\n",
             options.model.string(), vocabulary->words() * 64, s.pool->threads());
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
  // Follows random allowed tokens; only the masks are timed.
  double mask_time = 0, worst = 0;
  const auto follow = [&](const TokenConstraint& constraint, std::uint64_t seed) {
    const auto state = constraint.start();
    for (std::size_t i = 0; i < kSteps; ++i) {
      std::span<const std::uint64_t> mask;
      const double time = seconds([&] { mask = state->allowed(4000 - i); });
      mask_time += time;
      worst = std::max(worst, time);
      std::vector<std::int32_t> ids;
      for (std::size_t id = 0; id < kVocabulary; ++id) {
        if (mask[id / 64] >> (id % 64) & 1) ids.push_back(static_cast<std::int32_t>(id));
      }
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      state->advance(ids[(seed >> 33) % ids.size()]);
    }
  };
  std::vector<double> cold, warm, plain;
  double compiling = 0;
  for (int i = 0; i < s.repeats; ++i) {
    std::shared_ptr<const TokenConstraint> constraint;
    compiling += seconds([&] { constraint = compile(vocabulary); });
    mask_time = 0;
    follow(*constraint, static_cast<std::uint64_t>(i));
    cold.push_back(mask_time);
    mask_time = 0;
    follow(*constraint, static_cast<std::uint64_t>(i));
    warm.push_back(mask_time);
    plain.push_back(seconds(sample));
  }
  const double each = 1e6 / static_cast<double>(kSteps);
  fmt::print("masks of {} made tokens, {} steps ({:.1f} s to make the vocabulary)\n", kVocabulary,
             kSteps, making);
  fmt::print(
      "  greedy choice without a schema {:.0f} us a step; mask {:.0f} us when first needed "
      "(worst {:.1f} ms), {:.1f} us when known: {:.2f} and {:.3f} of the choice; compiling {:.2f} "
      "ms\n",
      median(plain) * each, median(cold) * each, worst * 1e3, median(warm) * each,
      median(cold) / median(plain), median(warm) / median(plain), compiling / s.repeats * 1e3);
}

}  // namespace

void constraint(const Settings& s) {
  decode(s);
  masks(s);
}

}  // namespace cupel::bench

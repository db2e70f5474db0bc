#include "cupel/eval/probe/probe.h"

#include <cmath>
#include <numeric>
#include <set>

#include "support/expect_error.h"
#include "support/scripted_target.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/eval/probe/nll.h"
#include "cupel/eval/probe/repeatability.h"
#include "cupel/eval/probe/retrieval.h"
#include "cupel/eval/probe/stray.h"

namespace cupel {
namespace {

using test::expect_input_error;
using test::ScriptedTarget;
using test::word_count;
using ::testing::Contains;
using ::testing::HasSubstr;

double faults(const ProbeResult& result) {
  return std::accumulate(result.items.begin(), result.items.end(), 0.0,
                         [](double sum, const ProbeItem& item) { return sum + item.fault; });
}

Completion text(const std::string& answer) {
  Completion c;
  c.text = answer;
  return c;
}

std::vector<CompletionRequest> prompts(int count) {
  std::vector<CompletionRequest> all(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    all[static_cast<std::size_t>(i)].prompt = "prompt " + std::to_string(i);
  }
  return all;
}

TEST(Repeatability, FindsThePromptWhoseAnswerDependsOnItsCompany) {
  ScriptedTarget target([](const CompletionRequest& request, std::size_t company) {
    Completion c = text("same words");
    c.output_ids = {4, 5, 6};
    c.margins = {3, 0.25F, 2};
    if (request.prompt == "prompt 2" && company > 1) {
      c.text = "same other";
      c.output_ids = {4, 7, 6};
    }
    return c;
  });
  const ProbeResult result = probe_repeatability(target, prompts(5));
  ASSERT_EQ(result.items.size(), 5U);
  EXPECT_EQ(faults(result), 1);
  EXPECT_EQ(result.items[2].fault, 1);
  EXPECT_THAT(result.lines,
              Contains("Prompt 2: 2 texts; in a crowd it parts from the one alone at token 1, "
                       "where the two best tokens were 0.25 apart."));
  EXPECT_THAT(result.lines, Contains("1 of 5 answers in a crowd differ from those alone."));
  EXPECT_THAT(result.lines,
              Contains("0 of 5 answers alone after a crowd differ from those alone."));
  EXPECT_THAT(result.lines, Contains("1 of 5 answers in another order differ from those alone."));
}

TEST(Repeatability, WithoutIdsItCountsBytes) {
  int asked = 0;
  ScriptedTarget target(
      [&](const CompletionRequest&, std::size_t) { return text(++asked <= 1 ? "ab" : "abc"); });
  const ProbeResult result = probe_repeatability(target, prompts(1));
  EXPECT_THAT(result.lines, Contains(HasSubstr("at byte 2.")));
  EXPECT_THROW(probe_repeatability(target, {}), InputError);
}

TEST(Probe, AnErrorIsInfrastructure) {
  ScriptedTarget target([](const CompletionRequest&, std::size_t) {
    Completion c;
    c.error = "gone";
    return c;
  });
  EXPECT_THROW(probe_repeatability(target, prompts(2)), InfrastructureError);
}

std::string key_in(const std::string& prompt) {
  return prompt.substr(prompt.find_first_of("0123456789"), 3);
}

TEST(Phase, FindsTheLengthsThatFail) {
  const auto target_that_fails = [](auto fails) {
    return ScriptedTarget([fails](const CompletionRequest& request, std::size_t) {
      const bool wrong = fails(word_count(request.prompt));
      return text(wrong ? " 7" : " " + key_in(request.prompt) + ".");
    });
  };
  PhaseOptions options;
  options.longest = 400;
  options.bos = false;
  ScriptedTarget good = target_that_fails([](int) { return false; });
  const ProbeResult clean = probe_phase(good, options);
  EXPECT_EQ(faults(clean), 0);
  EXPECT_EQ(clean.items.size(), 16U + 3 * 9);

  ScriptedTarget third = target_that_fails([](int length) { return length % 4 == 3; });
  const ProbeResult result = probe_phase(third, options);
  // 4 of the 16 shortest; 125 - 127 ... 131: two of the nine around each of three multiples.
  EXPECT_EQ(faults(result), 4 + 3 * 2);
  EXPECT_THAT(result.lines, Contains("Length mod 4 = 0: 0 of 13 wrong."));
  EXPECT_THAT(result.lines, Contains("Length mod 4 = 3: 10 of 10 wrong."));
  EXPECT_THAT(result.lines, Contains(HasSubstr("127, 131, 255, 259")));

  ScriptedTarget window = target_that_fails([](int length) { return length == 128; });
  EXPECT_THAT(probe_phase(window, options).lines, Contains("Wrong at lengths 128."));
}

TEST(Phase, TheFirstFillerMayAddMoreThanTheOthers) {
  std::set<int> lengths;
  ScriptedTarget target([&](const CompletionRequest& request, std::size_t) {
    Completion c = text(key_in(request.prompt));
    const int words = word_count(request.prompt);
    c.prompt_tokens = words > 11 ? words + 3 : words;
    lengths.insert(c.prompt_tokens);
    return c;
  });
  const ProbeResult result = probe_phase(target, {.longest = 140, .bos = false});
  EXPECT_EQ(faults(result), 0);
  for (int length = 124; length <= 132; ++length) EXPECT_TRUE(lengths.contains(length)) << length;
}

TEST(Phase, RefusesFormsWithoutTheirPlaces) {
  ScriptedTarget target([](const CompletionRequest&, std::size_t) { return text("1"); });
  PhaseOptions options;
  options.form = "{key}";
  expect_input_error([&] { probe_phase(target, options); }, {"--phase-template", "{filler}"});
  options = {};
  options.filler = "";
  expect_input_error([&] { probe_phase(target, options); }, {"--filler", "longer"});
}

TEST(Copy, SaysHowFarACopyWent) {
  // Copies, but goes wrong at the hundredth number.
  ScriptedTarget target([](const CompletionRequest& request, std::size_t) {
    const std::size_t begin = request.prompt.rfind("Text: ") + 6;
    std::string copy = request.prompt.substr(begin, request.prompt.rfind("\nCopy:") - begin);
    if (copy.size() > 400) copy.replace(400, 3, "000");
    return text(" " + copy + " ");
  });
  const ProbeResult result = probe_copy(target, {.sizes = {8, 64, 200}, .prompts = 4});
  ASSERT_EQ(result.items.size(), 12U);
  EXPECT_EQ(faults(result), 4);
  EXPECT_EQ(result.items[11].fault, 1);
  EXPECT_THAT(result.lines[1], HasSubstr("4 of 4 exact"));
  // 400 of 799 bytes.
  EXPECT_THAT(result.lines[2], HasSubstr("0 of 4 exact; copied without a mistake before the first: "
                                         "50.1 %"));
  expect_input_error([&] { probe_copy(target, {.form = "copy"}); }, {"--copy-template", "{text}"});
  expect_input_error([&] { probe_copy(target, {.sizes = {0}}); }, {"--copy-sizes"});
}

class Likely : public ScriptedTarget {
 public:
  Likely() : ScriptedTarget([](const CompletionRequest&, std::size_t) { return text(""); }) {}
  std::vector<TextLikelihood> likelihoods(std::span<const std::string> texts) override {
    std::vector<TextLikelihood> all;
    for (const std::string& t : texts) all.push_back({-2.5 * word_count(t), word_count(t)});
    return all;
  }
};

TEST(Nll, IsTheMeanOfEachText) {
  Likely target;
  const std::vector<std::string> texts = {"a b c", "d e"};
  const ProbeResult result = probe_nll(target, texts);
  EXPECT_DOUBLE_EQ(result.items[0].fault, 2.5);
  EXPECT_DOUBLE_EQ(result.items[1].fault, 2.5);
  EXPECT_THAT(result.lines, Contains("2 texts, 5 scored tokens; 2.500000 nats over all tokens."));
  ScriptedTarget none([](const CompletionRequest&, std::size_t) { return text(""); });
  expect_input_error([&] { probe_nll(none, texts); }, {"log probabilities of a prompt"});
}

TEST(Stray, FindsScriptsLoopsAndTruncation) {
  const StrayDetector detector({});
  const auto characters = [&](const std::string& t) {
    return detector.look_at(t, false).characters;
  };
  EXPECT_EQ(characters("Plain words, 3 × 4 = 12 — “so” α ≤ β, naïve 🙂\n"), "");
  EXPECT_EQ(characters("The answer is 12 苹果 and Ж, Ж"), "U+82F9 U+679C U+0416");
  EXPECT_EQ(characters("broken \xEF\xBF\xBD here"), "U+FFFD");
  EXPECT_EQ(characters("bytes \xff\xfe that are no text"), "");
  EXPECT_EQ(StrayDetector({.scripts = {"Latin", "Han"}}).look_at("果 и", false).characters,
            "U+0438");
  EXPECT_THROW(StrayDetector({.scripts = {"Klingon"}}), InputError);
  EXPECT_THROW(StrayDetector({.scripts = {"L}]|[^"}}), InputError);

  const std::string once = "one two three four five six seven eight nine. ";
  std::string loop;
  for (int i = 0; i < 4; ++i) loop += once;
  EXPECT_EQ(detector.look_at(once + once + once, false).loop, "");
  EXPECT_EQ(detector.look_at(loop, false).loop, "one two three four five six seven eight");
  std::string stutter;
  for (int i = 0; i < 11; ++i) stutter += "no ";
  EXPECT_NE(detector.look_at(stutter, false).loop, "");
}

TEST(Stray, FaultsAreByItem) {
  const std::vector<StrayAnswer> answers = {{0, "h0", "fine", false},
                                            {0, "h0", "Ж", false},
                                            {1, "h1", "fine", true},
                                            {1, "h1", "Ж", true},
                                            {2, "h2", "fine", false}};
  const ProbeResult result = probe_stray(answers, {});
  ASSERT_EQ(result.items.size(), 3U);
  EXPECT_EQ(result.items[0].fault, 0.5);
  EXPECT_EQ(result.items[1].fault, 1);
  EXPECT_EQ(result.items[2].fault, 0);
  EXPECT_THAT(result.lines[0],
              HasSubstr("Of 5 answers 2 hold characters of unexpected scripts, 0 repeat 8 words 4 "
                        "times or more, 2 were truncated."));
  EXPECT_THROW(probe_stray({}, {}), InputError);
}

TEST(ProbeName, ReadsBack) {
  for (const char* name : {"repeatability", "phase", "copy", "nll", "stray"}) {
    EXPECT_EQ(probe_name(parse_probe(name)), name);
  }
  expect_input_error([] { parse_probe("speed"); }, {"probe", "speed"});
}

}  // namespace
}  // namespace cupel

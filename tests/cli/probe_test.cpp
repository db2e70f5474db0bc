// cupel probe, and cupel assay --probe.
#include "cli/endpoint_command.h"
#include "support/planted.h"
#include "support/scripted_target.h"

#include "cupel/base/file.h"

namespace cupel {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the fixture and its servers
using testing::HasSubstr;
using testing::Not;

// Answers sums, repeats pass keys and copies; the key is wrong where the length is 3 mod 4 and
// `phase_fails`.
FakeReply answer_all(const FakeRequest& request, bool phase_fails) {
  if (request.json.contains("messages")) return {.body = chat_reply("x")};
  const std::string prompt = request.json.at("prompt");
  std::string answer;
  if (const std::size_t copy = prompt.rfind("\nCopy:"); copy != std::string::npos) {
    const std::size_t begin = prompt.rfind("Text: ") + 6;
    answer = " " + prompt.substr(begin, copy - begin);
  } else if (prompt.find("pass key") != std::string::npos) {
    const bool wrong = phase_fails && word_count(prompt) % 4 == 3;
    answer = wrong ? " 1" : " " + prompt.substr(prompt.find_first_of("0123456789"), 3);
  } else {
    answer = " so\n#### " + std::to_string(right_answer(prompt));
  }
  nlohmann::json reply = nlohmann::json::parse(completions_reply(answer));
  reply["usage"]["prompt_tokens"] = word_count(prompt);
  return {.body = reply.dump()};
}

class ProbeCommand : public EndpointCommand {
 protected:
  CommandResult probe(const std::string& name, const FakeServer& server, const Words& more = {}) {
    Words words = {"probe", name, task_, "--shots", "1", "--endpoint", server.url()};
    words.insert(words.end(), more.begin(), more.end());
    return cupel_program(words);
  }
};

TEST_F(ProbeCommand, EachProbeOfAServer) {
  write_task(40);
  FakeServer server([](const FakeRequest& request) { return answer_all(request, true); });
  const CommandResult phase = probe("phase", server, {"--longest", "150"});
  EXPECT_EQ(phase.exit_code, 0) << phase.err;
  // 16 of the shortest and 9 around 128, a quarter of them at 3 mod 4.
  EXPECT_THAT(phase.out, HasSubstr("phase: 24.00 % wrong answers, 95 % "));
  EXPECT_THAT(phase.out, HasSubstr("(25 prompts)"));
  EXPECT_THAT(phase.out, HasSubstr("Length mod 4 = 3: 6 of 6 wrong."));
  const CommandResult copy = probe("copy", server, {"--copy-sizes", "4,8", "--copy-prompts", "2"});
  EXPECT_THAT(copy.out, HasSubstr("copy: 0.00 % copies that are not exact, 95 % 0.00 to "));
  const CommandResult same = probe("repeatability", server, {"--probe-prompts", "3"});
  EXPECT_THAT(same.out, HasSubstr("repeatability: 0.00 % prompts with more than one text"));
  EXPECT_THAT(same.out, HasSubstr("(3 prompts)"));
  const CommandResult stray = probe("stray", server);
  EXPECT_THAT(stray.out, HasSubstr("Of 32 answers 0 hold characters of unexpected scripts"));
  // It returns no log probabilities of a prompt, and the probe says so.
  expect_refused(probe("nll", server), {"log probabilities of the prompt", "a reply without them"});
  expect_refused(probe("nll", server, {"--api", "chat"}), {"--api chat"});
}

TEST_F(ProbeCommand, LooksAtRecords) {
  write_task(4);
  FakeServer server([](const FakeRequest& request) {
    const bool stray = right_answer(request.json.at("prompt")) == 3;
    return FakeReply{.body = completions_reply(stray ? " 三 3" : " 3")};
  });
  ASSERT_EQ(eval({"--endpoint", server.url()}).exit_code, 0);
  const CommandResult result = cupel_program({"probe", "stray", "--records", records_});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("stray: 25.00 % answers with a stray character"));
  EXPECT_THAT(result.out, HasSubstr("Item 2: U+4E09."));
  expect_refused(cupel_program({"probe", "copy", "--records", records_}), {"--records", "copy"});
}

TEST_F(ProbeCommand, Refusals) {
  write_task(4);
  FakeServer server([](const FakeRequest& request) { return answer_all(request, false); });
  expect_refused(probe("speed", server), {"probe", "speed"});
  expect_refused(probe("stray", server, {"--scripts", "Klingon"}), {"--scripts"});
  expect_refused(probe("phase", server, {"--phase-template", "{key}"}), {"{filler}"});
  expect_refused(probe("copy", server, {"--copy-template", "x"}), {"{text}"});
  const std::string url = server.url();
  expect_refused(assay({"--endpoint", "a=" + url, "--endpoint", "b=" + url, "--reference", "a",
                        "--margin", "1", "--api", "chat", "--probe", "nll"}),
                 {"--probe nll", "chat"});
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(ProbeCommand, AProbeGatesAnAssayOnlyWithAMargin) {
  write_task(300);
  FakeServer good([](const FakeRequest& request) { return answer_all(request, false); });
  FakeServer bad([](const FakeRequest& request) { return answer_all(request, true); });
  const auto assay_with = [&](const Words& more) {
    Words words = {
        "--endpoint", "good=" + good.url(), "--endpoint", "bad=" + bad.url(), "--reference",
        "good",       "--margin",           "2",          "--longest",        "400"};
    words.insert(words.end(), more.begin(), more.end());
    return assay(words);
  };
  const CommandResult shown = assay_with({"--probe", "phase", "--probe", "repeatability"});
  EXPECT_EQ(shown.exit_code, 0) << shown.out << shown.err;  // no word problem shows it
  EXPECT_THAT(shown.out, HasSubstr("bad, phase: 2"));
  EXPECT_THAT(shown.out, HasSubstr("no margin declared, not judged"));
  EXPECT_THAT(shown.out, HasSubstr("shown, never judged"));
  EXPECT_THAT(shown.out, Not(HasSubstr("Holm")));  // one comparison
  const CommandResult gated =
      assay_with({"--probe", "phase:5", "--probe", "stray:2", "--probe", "copy"});
  EXPECT_EQ(gated.exit_code, 1) << gated.out << gated.err;
  EXPECT_THAT(gated.out, HasSubstr("REGRESSION at a margin of 5"));
  EXPECT_THAT(gated.out, HasSubstr("PASS at a margin of 2"));
  EXPECT_THAT(gated.out, HasSubstr("over the 3 comparisons, gating probes included, together"));
  const CommandResult sequential = assay_with({"--probe", "phase:5", "--until-decided"});
  EXPECT_EQ(sequential.exit_code, 1) << sequential.out << sequential.err;
  expect_refused(assay_with({"--probe", "repeatability:1"}), {"no regression"});
  expect_refused(assay_with({"--probe", "phase:x"}), {"NAME:MARGIN", "phase:x"});
  expect_refused(assay_with({"--probe", "phase", "--probe", "phase:2"}), {"each probe once"});
}

TEST_F(ProbeCommand, APlantedEndpointOverHttp) {
  // 100 of 300 items flip at a rate of a half.
  write_task(300);
  PlantedAnswers first({.items = 300, .unstable = 100, .seed = 1});
  PlantedAnswers second({.items = 300, .unstable = 100, .seed = 2});
  const auto serve = [](PlantedAnswers& answers) {
    return [&answers](const FakeRequest& request) {
      return FakeReply{.body = completions_reply(answers.answer(request.json.at("prompt")))};
    };
  };
  FakeServer a(serve(first)), b(serve(second));
  const CommandResult ran = assay({"--endpoint", "a=" + a.url(), "--endpoint", "b=" + b.url(),
                                   "--reference", "a", "--margin", "4", "--repeats", "4"});
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  const std::string cells = folder_.path() / "cells/sums.";
  const CommandResult compared =
      cupel_program({"assay", "compare", cells + "a.jsonl", cells + "b.jsonl", "--margin", "4"});
  EXPECT_EQ(compared.exit_code, 0) << compared.out << compared.err;
  // "u, low..high" of both: the planted 100 is within.
  const std::string& out = compared.out;
  std::size_t at = 0;
  for (int cell = 0; cell < 2; ++cell) {
    at = out.find("..", out.find(", ", out.find(", >=", at) + 4));
    ASSERT_NE(at, std::string::npos) << out;
    const std::size_t begin = out.rfind(' ', at) + 1;
    EXPECT_LT(std::stod(out.substr(begin)), 100) << out;
    EXPECT_GT(std::stod(out.substr(at + 2)), 100) << out;
  }
}

}  // namespace
}  // namespace cupel

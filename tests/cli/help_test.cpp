// What a user can find out without a model.
#include <map>
#include <sstream>

#include "cli/cupel_program.h"

namespace cupel {
namespace {

using test::CommandResult;
using test::cupel_program;
using testing::HasSubstr;

const std::vector<std::string> kEngineFlags = {
    "--model",   "--attention-backend", "--numerics",        "--kv-cache-dtype", "--prefill-chunk",
    "--threads", "--max-cache-bytes",   "--no-prefix-cache", "--weights",        "--isa"};
const std::vector<std::string> kPromptFlags = {
    "--file",          "--shots-file", "--question-field", "--answer-field", "--template",
    "--shot-template", "--data",       "--shots",          "--limit",        "--max-new-tokens",
    "--stop",          "--no-bos",     "--concurrency"};
const std::vector<std::string> kRunFlags = {"--temperature", "--repeats", "--seed", "--resume",
                                            "--records"};
const std::vector<std::string> kProbeFlags = {
    "--probe-prompts", "--nll-texts",  "--phase-template", "--filler", "--longest",
    "--copy-template", "--copy-sizes", "--copy-prompts",   "--scripts"};
const std::vector<std::string> kConnectionFlags = {"--endpoint", "--api", "--served-model",
                                                   "--api-key-env", "--timeout"};

const std::vector<std::string> kReportFlags = {"--report-markdown", "--report-json",
                                               "--report-junit", "--report-html", "--history"};

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const std::vector<std::string> kEndpointFlags =
    kConnectionFlags +
    std::vector<std::string>{"--retries", "--stream", "--logprobs", "--launch-id"};
const std::vector<std::string> kBenchFlags =
    kConnectionFlags + std::vector<std::string>{"--vocabulary", "--seed", "--repeats",
                                                "--run-name",   "--json", "--markdown"};

const std::map<std::string, std::vector<std::string>> kFlags = {
    {"assay", kEngineFlags + kPromptFlags + kRunFlags + kProbeFlags + kEndpointFlags +
                  std::vector<std::string>{"--reference", "--margin", "--until-decided", "--looks",
                                           "--bound", "--probe"} +
                  kReportFlags},
    {"bench", {}},
    {"eval", kEngineFlags + kPromptFlags + kRunFlags + kEndpointFlags},
    {"fetch", {"--url", "--sha256"}},
    {"generate",
     kEngineFlags + std::vector<std::string>{"--prompt", "--no-bos", "--max-new-tokens",
                                             "--temperature", "--seed", "--top-k", "--top-p",
                                             "--min-p", "--repetition-penalty",
                                             "--frequency-penalty", "--presence-penalty",
                                             "--ignore-eos", "--stop", "--json-schema", "--stats"}},
    {"inspect", {"--headers-only", "--json"}},
    {"logits", kEngineFlags + std::vector<std::string>{"--ids", "--out"}},
    {"make-random",
     {"--config", "--layer-ids", "--tokenizer", "--seed", "--headers-only", "--threads"}},
    {"preflight",
     {"--headers-only", "--json", "--top", "--gpu-memory", "--threads", "--throughput", "--data",
      "--numerics,--no-numerics{false}", "--prompts", "--prompt-count"}},
    {"probe", kEngineFlags + kPromptFlags + kProbeFlags + kEndpointFlags +
                  std::vector<std::string>{"--records"}},
    {"repack", {"--experts", "--verify", "--json", "--top", "--threads", "--throughput"}},
    {"serve", kEngineFlags + std::vector<std::string>{"--host",
                                                      "--port",
                                                      "--served-model-name",
                                                      "--api-key-file",
                                                      "--bos",
                                                      "--no-bos",
                                                      "--release",
                                                      "--chat-max-tokens",
                                                      "--no-access-log",
                                                      "--log-text",
                                                      "--grace",
                                                      "--max-running",
                                                      "--max-queue",
                                                      "--max-connections",
                                                      "--max-sequences",
                                                      "--max-messages",
                                                      "--max-json-depth",
                                                      "--max-logprobs",
                                                      "--max-body-bytes",
                                                      "--max-header-bytes",
                                                      "--header-timeout",
                                                      "--body-timeout",
                                                      "--idle-timeout",
                                                      "--write-timeout",
                                                      "--allow-unknown-parameters"}},
};

const std::map<std::string, std::vector<std::string>> kAssayFlags = {
    {"compare",
     kReportFlags + std::vector<std::string>{"--margin", "--looks", "--bound", "--deterministic",
                                             "--filter", "--metric", "--no-ledger"}},
    {"counts",
     {"--reference", "--candidate", "--margin", "--control-reference", "--control-candidate",
      "--floor", "--retries"}},
    {"floor",
     {"--records", "--items", "--accuracy", "--unstable", "--floor", "--retries", "--margin",
      "--false-alarm"}},
    {"plan", {"--items", "--accuracy", "--unstable", "--margin", "--cells", "--looks"}},
};

const std::map<std::string, std::vector<std::string>> kBenchCommandFlags = {
    {"one-batch",
     kBenchFlags + std::vector<std::string>{"--batch-size", "--input-len", "--output-len",
                                            "--skip-warmup", "--dollars-per-hour"}},
    {"serving",
     kBenchFlags + std::vector<std::string>{"--num-prompts", "--request-rate", "--max-concurrency",
                                            "--input-len", "--output-len", "--range-ratio",
                                            "--warmup", "--flush-cache", "--no-ignore-eos",
                                            "--requests"}},
};

// What the help says of each flag: name -> its text, of however many lines.
std::map<std::string, std::string> described_flags(const std::string& help) {
  std::map<std::string, std::string> flags;
  std::istringstream lines(help);
  std::string line, name;
  while (std::getline(lines, line)) {
    if (line.starts_with("  --")) {
      name = line.substr(2, line.find(' ', 2) - 2);
      flags[name] = line.substr(2);
    } else if (line.starts_with("      ") && !name.empty()) {
      flags[name] += line;
    } else {
      name.clear();
    }
  }
  return flags;
}

void expect_flags(const std::vector<std::string>& words, const std::vector<std::string>& names) {
  SCOPED_TRACE(words.back());
  const CommandResult help = cupel_program(words + std::vector<std::string>{"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.err, "");
  const auto described = described_flags(help.out);
  std::vector<std::string> found;
  for (const auto& [name, text] : described) {
    found.push_back(name);
    // "--threads INT=0 …", "… REQUIRED …" or in words.
    const std::string head = text.substr(0, text.find("  "));
    EXPECT_TRUE(head.find('=') != std::string::npos || head.ends_with(" REQUIRED") ||
                text.find("(default: ") != std::string::npos)
        << text;
  }
  EXPECT_THAT(found, testing::UnorderedElementsAreArray(names));
}

TEST(Help, EveryFlagWithItsDefault) {
  for (const auto& [command, names] : kFlags) expect_flags({command}, names);
  for (const auto& [command, names] : kAssayFlags) expect_flags({"assay", command}, names);
  for (const auto& [command, names] : kBenchCommandFlags) expect_flags({"bench", command}, names);
}

TEST(Help, DefaultsAreTheDocumentedOnes) {
  const auto assay = described_flags(cupel_program({"assay", "--help"}).out);
  EXPECT_THAT(assay.at("--attention-backend"), HasSubstr("=[packed,unified]"));
  EXPECT_THAT(assay.at("--shots"), HasSubstr("=8 "));
  EXPECT_THAT(assay.at("--max-new-tokens"), HasSubstr("=512 "));
  EXPECT_THAT(assay.at("--temperature"), HasSubstr("=0 "));
  EXPECT_THAT(assay.at("--repeats"), HasSubstr("=1 "));
  EXPECT_THAT(assay.at("--kv-cache-dtype"), HasSubstr("=auto "));
  EXPECT_THAT(assay.at("--numerics"), HasSubstr("=reference "));
  EXPECT_THAT(assay.at("--prefill-chunk"), HasSubstr("=512 "));
  EXPECT_THAT(assay.at("--model"), HasSubstr(test::kModelVariable));
  const auto generate = described_flags(cupel_program({"generate", "--help"}).out);
  EXPECT_THAT(generate.at("--attention-backend"), HasSubstr("unified_kv_triton"));
}

TEST(Help, TheProgramNamesItsCommandsAndExitCodes) {
  const CommandResult help = cupel_program({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const auto& [command, names] : kFlags) EXPECT_THAT(help.out, HasSubstr("\n  " + command));
  EXPECT_THAT(help.out, HasSubstr("3 infrastructure, 4 configuration or usage"));
}

TEST(Help, Version) {
  const CommandResult version = cupel_program({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, testing::MatchesRegex("cupel [0-9]+\\.[0-9]+\\.[0-9]+ .+\n"));
}

}  // namespace
}  // namespace cupel

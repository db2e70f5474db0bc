// Wrong command lines and wrong files: exit code 4, a message on standard error, nothing written.
#include "cli/cupel_program.h"
#include "support/tiny_checkpoint.h"
#include <nlohmann/json.hpp>

namespace cupel {
namespace {

using test::bundled;
using test::cupel_program;
using test::expect_refused;
using test::TemporaryFolder;
using test::TinyCheckpoint;
using test::write_file;

using Words = std::vector<std::string>;

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Complete command lines, each of which one more flag then spoils.
const Words kGenerate = {"generate", "--model", bundled("tiny-v4-preview"), "--prompt", "x"};
const Words kEval = {"eval", "wordmath", "--model", bundled("tiny-v4-preview"), "--limit", "1"};
const Words kAssay = {"assay",    "wordmath", "--model",     bundled("tiny-v4-preview"),
                      "--margin", "1",        "--reference", "tiny-v4-preview/unified"};

TEST(Refusals, CommandLines) {
  expect_refused(cupel_program({}), {"a command is required"});
  expect_refused(cupel_program({"assess"}), {"assess"});
  for (const std::string command : {"assay", "eval", "generate", "inspect", "logits"}) {
    expect_refused(cupel_program({command, "--bogus"}), {""});
  }
  expect_refused(cupel_program(kGenerate + Words{"--bogus"}), {"--bogus"});
  expect_refused(cupel_program(kGenerate + Words{"stray"}), {"stray"});
  expect_refused(cupel_program(kGenerate + Words{"--threads"}), {"--threads"});
  expect_refused(cupel_program({"generate", "--model", "m"}), {"--prompt is required"});
  expect_refused(cupel_program({"eval", "--model", "m"}), {"task is required"});
  expect_refused(cupel_program({"logits", "--model", "m", "--out", "o"}), {"--ids is required"});
  expect_refused(cupel_program({"logits", "--model", "m", "--ids", "i"}), {"--out is required"});
  expect_refused(cupel_program({"assay", "wordmath", "--margin", "1"}),
                 {"--reference is required"});
  expect_refused(cupel_program({"assay", "wordmath", "--reference", "a/b"}),
                 {"--margin is required"});
}

TEST(Refusals, FlagValues) {
  const std::vector<std::pair<std::string, std::string>> engine = {
      {"--threads", "-1"},          {"--threads", "many"},    {"--prefill-chunk", "-1"},
      {"--prefill-chunk", "1.5"},   {"--numerics", "bf16"},   {"--kv-cache-dtype", "int8"},
      {"--attention-backend", "x"}, {"--isa", "sse2"},        {"--temperature", "-1"},
      {"--temperature", "nan"},     {"--temperature", "inf"}, {"--max-new-tokens", "0"},
      {"--max-new-tokens", "1e9"},  {"--seed", "-1"},         {"--stop", ""},
      {"--kv-cache-dtype", ""}};
  for (const auto& [flag, value] : engine) {
    SCOPED_TRACE(flag + "=" + value);
    expect_refused(cupel_program(kGenerate + Words{flag, value}), {value});
    expect_refused(cupel_program(kEval + Words{flag, value}), {value});
  }
  const std::vector<std::pair<std::string, std::string>> task = {
      {"--shots", "-1"},          {"--shots", "9"},   {"--limit", "-1"},
      {"--limit", "99999999999"}, {"--repeats", "0"}, {"--concurrency", "-1"},
      {"--data", "/nowhere"}};
  for (const auto& [flag, value] : task) {
    SCOPED_TRACE(flag + "=" + value);
    const Words line = {"eval", "wordmath", "--model", bundled("tiny-v4-preview"), flag, value};
    expect_refused(cupel_program(line), {value});
  }
  expect_refused(cupel_program(kEval + Words{"--resume"}), {"--resume", "--records"});
}

TEST(Refusals, CommandsWithoutAModel) {
  expect_refused(cupel_program({"generate", "--prompt", "x"}), {"--model", test::kModelVariable});
  expect_refused(cupel_program({"eval", "wordmath"}), {"--model", test::kModelVariable});
  expect_refused(cupel_program({"generate", "--prompt", "x", "--model", "/nowhere"}), {"/nowhere"});
}

TEST(Refusals, PromptsThatCannotBeServed) {
  expect_refused(cupel_program({"generate", "--model", bundled("tiny-v4-preview"), "--prompt", "",
                                "--no-bos"}),
                 {"at least one token"});
  expect_refused(cupel_program(kGenerate + Words{"--max-new-tokens", "1048576"}),
                 {"context of 1048576", "2 + 1048576"});
}

// Each in front of a file of records, which stays as it was.
TEST(Refusals, EvalLeavesRecordsAlone) {
  const TemporaryFolder folder;
  const std::string records = folder.path() / "r.jsonl";
  write_file(records, "kept\n");
  const auto eval = [&](const std::string& task, const std::string& model, const Words& more = {}) {
    return cupel_program(Words{"eval", task, "--model", model, "--records", records} + more);
  };
  const std::string model = bundled("tiny-v4-preview");
  expect_refused(eval("wordmaths", model), {"wordmath, gsm8k or a file", "wordmaths"});

  const std::string task = folder.path() / "mine.jsonl";
  write_file(task, "{\"question\": \"q\", \"answer\": \"1\"}\n{\"question\": \"q\", \"answ\n");
  expect_refused(eval(task, model, {"--shots", "0"}), {task + ":2:", "broken JSON"});

  TinyCheckpoint tiny("tiny-v4-preview");
  tiny.edit_json("tokenizer.json", [](nlohmann::json& json) { json["model"].erase("merges"); });
  expect_refused(eval("wordmath", tiny.path()), {(tiny.path() / "tokenizer.json"), "merges"});
  std::filesystem::remove(tiny.path() / "tokenizer.json");
  expect_refused(eval("wordmath", tiny.path()), {(tiny.path() / "tokenizer.json")});

  TinyCheckpoint shorter("tiny-v4-preview");
  shorter.edit_config([](nlohmann::json& config) { config["max_position_embeddings"] = 900; });
  expect_refused(eval("wordmath", shorter.path()), {"wordmath item 0", "the context of 900"});

  EXPECT_EQ(read_file(records), "kept\n");
  expect_refused(cupel_program(kEval + Words{"--records", folder.path() / "no" / "r.jsonl"}),
                 {"no/r.jsonl", "writable"});
}

// Whatever is wrong with any cell shows before the first cell runs, and no folder appears.
TEST(Refusals, AssayRunsNothing) {
  const TemporaryFolder folder;
  const std::string records = folder.path() / "records";
  const auto assay = [&](const Words& more) {
    return cupel_program(Words{"assay", "wordmath", "--records", records, "--limit", "2"} + more);
  };
  const std::string preview = bundled("tiny-v4-preview");
  const Words one = {"--model", preview, "--reference", "tiny-v4-preview/unified"};
  for (const std::string margin : {"0", "-1", "nan", "101"}) {
    expect_refused(assay(one + Words{"--margin", margin}), {"margin"});
  }
  // SGLang's names of the backends will do: the margin is what is refused.
  for (const std::string backend : {"triton", "unified_kv_triton"}) {
    expect_refused(
        assay({"--model", preview, "--margin", "0", "--reference", "tiny-v4-preview/" + backend}),
        {"margin"});
  }
  const Words margin = {"--margin", "1"};
  expect_refused(
      assay(margin + Words{"--model", preview, "--reference", "tiny-v4-preview/fast"}),
      {"--reference", "tiny-v4-preview/packed, tiny-v4-preview/unified", "tiny-v4-preview/fast"});
  expect_refused(assay(one + margin + Words{"--attention-backend", "unified"}),
                 {"cells", "at least two"});
  expect_refused(assay(one + margin + Words{"--attention-backend", "unified,packed,triton"}),
                 {"tiny-v4-preview/packed twice"});
  expect_refused(assay(one + margin + Words{"--attention-backend", "unified,warp"}), {"warp"});
  expect_refused(
      assay(Words{"--model", preview, preview} + Words(one.begin() + 2, one.end()) + margin),
      {"twice"});
  // The packed layout has no bf16 form; the cell before it has.
  expect_refused(assay(one + margin +
                       Words{"--attention-backend", "unified,packed", "--kv-cache-dtype", "bf16"}),
                 {"packed", "bf16"});

  const Words two = {"--reference", "tiny-v4-preview/unified", "--model", preview};
  TinyCheckpoint tiny("tiny-v4-0731");
  tiny.edit_json("tokenizer.json", [](nlohmann::json& json) { json["model"].erase("merges"); });
  expect_refused(assay(margin + two + Words{tiny.path()}), {"tokenizer.json", "merges"});
  TinyCheckpoint shorter("tiny-v4-0731");
  shorter.edit_config([](nlohmann::json& config) { config["max_position_embeddings"] = 900; });
  expect_refused(assay(margin + two + Words{shorter.path()}), {"the context of 900"});
  tiny.remove_tensor("layers.1.attn.wq_a.scale");
  expect_refused(assay(margin + two + Words{tiny.path()}), {"layers.1.attn.wq_a.scale"});

  EXPECT_FALSE(std::filesystem::exists(records));
  write_file(records, "a file");
  expect_refused(assay(one + margin), {"--records", records});
}

}  // namespace
}  // namespace cupel

// cupel logits: other programs compare themselves with these files.
#include <cstring>

#include "cli/cupel_program.h"
#include "support/tiny_checkpoint.h"
#include <nlohmann/json.hpp>

#include "cupel/engine/engine.h"

namespace cupel {
namespace {

using test::bundled;
using test::CommandResult;
using test::cupel_program;
using test::expect_refused;
using test::TemporaryFolder;
using test::TinyCheckpoint;
using test::write_file;
using testing::HasSubstr;

struct Line {
  std::vector<std::int32_t> prompt, feed;
};

// The third passes the window of 128 and an entry of 128 tokens.
std::vector<Line> example_lines() {
  std::vector<Line> lines = {{{0, 5, 30, 31, 32}, {33, 34, 35}}, {{0}, {}}, {{}, {25, 230}}};
  for (std::int32_t i = 0; i < 140; ++i) lines[2].prompt.push_back(i == 0 ? 0 : 20 + (7 * i) % 600);
  return lines;
}

std::string ids_text(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines) {
    text += nlohmann::json{{"prompt_ids", line.prompt}, {"feed_ids", line.feed}}.dump() + "\n";
  }
  return text;
}

struct Setting {
  const char* backend;
  const char* kv_dtype;
  const char* numerics;
};

void PrintTo(const Setting& s, std::ostream* out) {
  *out << s.backend << ' ' << s.kv_dtype << ' ' << s.numerics;
}

class LogitsCommand : public testing::TestWithParam<Setting> {};

TEST_P(LogitsCommand, WritesTheBitsOfTheEngine) {
  const Setting& s = GetParam();
  const TemporaryFolder folder;
  const auto ids = folder.path() / "ids.jsonl", out = folder.path() / "out.safetensors";
  const std::vector<Line> lines = example_lines();
  write_file(ids, ids_text(lines));
  const CommandResult result =
      cupel_program({"logits", "--model", bundled("tiny-v4-0731"), "--ids", ids, "--out", out,
                     "--attention-backend", s.backend, "--kv-cache-dtype", s.kv_dtype, "--numerics",
                     s.numerics, "--prefill-chunk", "3"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");

  Engine engine({.model = bundled("tiny-v4-0731"),
                 .network = {.backend = parse_backend(s.backend),
                             .kv_dtype = parse_kv_dtype(s.kv_dtype),
                             .numerics = parse_numerics(s.numerics)}});
  const SafetensorsFile file(out);
  ASSERT_EQ(file.tensors().size(), lines.size());
  for (std::size_t n = 0; n < lines.size(); ++n) {
    const Tensor& tensor = file.tensors()[n];
    EXPECT_EQ(tensor.name, std::to_string(n));
    EXPECT_EQ(tensor.dtype, Dtype::kF32);
    EXPECT_THAT(tensor.shape, testing::ElementsAre(1 + lines[n].feed.size(), 768));
    const std::vector<float> expected = engine.logits(lines[n].prompt, lines[n].feed);
    ASSERT_EQ(tensor.data.size(), expected.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(tensor.data.data(), expected.data(), tensor.data.size()), 0) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, LogitsCommand,
                         testing::Values(Setting{"reference", "auto", "reference"},
                                         Setting{"packed", "auto", "reference"},
                                         Setting{"unified", "bf16", "reference"},
                                         Setting{"unified", "fp8_e4m3", "reference"},
                                         Setting{"reference", "auto", "float32"},
                                         Setting{"packed", "auto", "float32"},
                                         Setting{"unified", "auto", "float32"}),
                         [](const auto& info) {
                           return std::string(info.param.backend) + "_" + info.param.kv_dtype +
                                  "_" + info.param.numerics;
                         });

class LogitsFaults : public testing::Test {
 protected:
  // Runs with a good line, then `line`.
  CommandResult run(const std::string& line, const std::string& model, const std::string& out) {
    write_file(ids_, R"({"prompt_ids": [0, 5]})" + std::string("\n") + line + "\n");
    return cupel_program({"logits", "--model", model, "--ids", ids_, "--out", out});
  }
  void expect_bad_line(const std::string& line, const std::vector<std::string>& parts) {
    SCOPED_TRACE(line);
    const CommandResult result = run(line, bundled("tiny-v4-preview"), out_);
    expect_refused(result, {ids_ + ":2"});
    expect_refused(result, parts);
    EXPECT_FALSE(std::filesystem::exists(out_));
  }

  TemporaryFolder folder_;
  std::string ids_ = folder_.path() / "ids.jsonl";
  std::string out_ = folder_.path() / "out.safetensors";
};

TEST_F(LogitsFaults, BadLinesAreNamedAndNothingIsWritten) {
  expect_bad_line(R"({"prompt_ids": [0, 5)", {"expected an object"});
  expect_bad_line("[0, 5]", {"expected an object", "found [0, 5]"});
  expect_bad_line(R"({"feed_ids": [5]})", {"prompt_ids", "found nothing"});
  expect_bad_line(R"({"prompt_ids": []})", {"prompt_ids", "at least one"});
  expect_bad_line(R"({"prompt_ids": 5})", {"prompt_ids", "a list", "found 5"});
  expect_bad_line(R"({"prompt_ids": [0, "5"]})", {"prompt_ids[1]", "found \"5\""});
  expect_bad_line(R"({"prompt_ids": [0, 5.0]})", {"prompt_ids[1]", "found 5.0"});
  expect_bad_line(R"({"prompt_ids": [0, 768]})", {"prompt_ids[1]", "[0, 768)", "found 768"});
  expect_bad_line(R"({"prompt_ids": [-1]})", {"prompt_ids[0]", "found -1"});
  expect_bad_line(R"({"prompt_ids": [18446744073709551615]})", {"found 18446744073709551615"});
  expect_bad_line(R"({"prompt_ids": [0], "feed_ids": [4294967296]})", {"feed_ids[0]"});
  expect_bad_line(R"({"prompt_ids": [0], "feed_ids": null})", {"feed_ids", "a list"});
}

TEST_F(LogitsFaults, LinesBeyondTheContext) {
  TinyCheckpoint tiny("tiny-v4-preview");
  tiny.edit_config([](nlohmann::json& config) { config["max_position_embeddings"] = 4; });
  expect_refused(run(R"({"prompt_ids": [0, 5, 6], "feed_ids": [7, 8]})", tiny.path(), out_),
                 {ids_ + ":2", "at most 4", "found 5"});
  EXPECT_EQ(run(R"({"prompt_ids": [0, 5, 6], "feed_ids": [7]})", tiny.path(), out_).exit_code, 0);
}

TEST_F(LogitsFaults, FilesThatCannotBeReadOrWritten) {
  const std::string model = bundled("tiny-v4-preview");
  expect_refused(cupel_program({"logits", "--model", model, "--ids", "/nowhere", "--out", out_}),
                 {"/nowhere"});
  write_file(ids_, "");
  expect_refused(cupel_program({"logits", "--model", model, "--ids", ids_, "--out", out_}),
                 {ids_, "at least one line"});
  EXPECT_FALSE(std::filesystem::exists(out_));
  const std::string good = R"({"prompt_ids": [0]})";
  expect_refused(run(good, model, folder_.path() / "no" / "out"), {"no/out", "writable"});
  expect_refused(run(good, model, folder_.path()), {folder_.path(), "a folder"});
  // No traces of attempts.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);

  write_file(out_, "before");
  run("[", model, out_);
  EXPECT_EQ(read_file(out_), "before");
  EXPECT_EQ(run(good, model, out_).exit_code, 0);
  EXPECT_EQ(SafetensorsFile(out_).tensors().size(), 2U);
}

}  // namespace
}  // namespace cupel

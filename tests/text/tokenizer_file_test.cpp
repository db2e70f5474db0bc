// Every way a tokenizer.json can be unfit, and what the error says.
#include "cupel/text/tokenizer_file.h"

#include <fstream>
#include <functional>

#include "support/temporary_folder.h"
#include "text/small_tokenizer.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/base/error.h"
#include "cupel/text/tokenizer.h"

namespace cupel {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string error_of(const std::string& text) {
  try {
    parse_tokenizer_file(text, "tokenizer.json");
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "no error";
}

json valid() {
  json file = test::small_tokenizer({{"a", "b"}, {"ab", "c"}});
  file["added_tokens"].push_back(test::added_token(300, "<think>"));
  return file;
}

struct Defect {
  const char* name;
  std::function<void(json&)> make;
  const char* field;
  const char* says;
};

json& step(json& file, std::size_t index) {
  return file["pre_tokenizer"]["pretokenizers"][index];
}

const Defect kDefects[] = {
    {"NotAnObject", [](json& f) { f = json::array(); }, "tokenizer.json: expected an object", "[]"},
    {"NoModel", [](json& f) { f.erase("model"); }, "model", "no field"},
    {"ModelIsNull", [](json& f) { f["model"] = nullptr; }, "model", "null"},
    {"OtherModel", [](json& f) { f["model"]["type"] = "Unigram"; }, "model.type", "\"Unigram\""},
    {"ModelTypeIsANumber", [](json& f) { f["model"]["type"] = 1; }, "model.type", "a string"},
    {"Dropout", [](json& f) { f["model"]["dropout"] = 0.5; }, "model.dropout", "0.5"},
    {"Prefix", [](json& f) { f["model"]["continuing_subword_prefix"] = "##"; },
     "model.continuing_subword_prefix", "\"##\""},
    {"Suffix", [](json& f) { f["model"]["end_of_word_suffix"] = "</w>"; },
     "model.end_of_word_suffix", "\"</w>\""},
    {"ByteFallback", [](json& f) { f["model"]["byte_fallback"] = true; }, "model.byte_fallback",
     "true"},
    {"IgnoreMergesIsANumber", [](json& f) { f["model"]["ignore_merges"] = 1; },
     "model.ignore_merges", "true or false"},
    {"NoVocabulary", [](json& f) { f["model"].erase("vocab"); }, "model.vocab", "no field"},
    {"VocabularyIsAList", [](json& f) { f["model"]["vocab"] = json::array(); }, "model.vocab",
     "an object"},
    {"EmptyVocabulary", [](json& f) { f["model"]["vocab"] = json::object(); }, "model.vocab",
     "none for byte 0x00"},
    {"ByteWithoutToken", [](json& f) { f["model"]["vocab"].erase("\u0120"); }, "model.vocab",
     "none for byte 0x20"},
    {"NegativeId", [](json& f) { f["model"]["vocab"]["ab"] = -1; }, "model.vocab.ab", "-1"},
    {"IdTooLarge", [](json& f) { f["model"]["vocab"]["ab"] = 2147483647; }, "model.vocab.ab",
     "2147483647"},
    {"IdAbove64Bits", [](json& f) { f["model"]["vocab"]["ab"] = 18446744073709551615U; },
     "model.vocab.ab", "18446744073709551615"},
    {"IdIsAFraction", [](json& f) { f["model"]["vocab"]["ab"] = 1.5; }, "model.vocab.ab", "1.5"},
    {"IdIsAString", [](json& f) { f["model"]["vocab"]["ab"] = "7"; }, "model.vocab.ab", "\"7\""},
    {"IdTwice", [](json& f) { f["model"]["vocab"]["ab"] = 257; }, "model.vocab.ab", "257"},
    {"NoMerges", [](json& f) { f["model"].erase("merges"); }, "model.merges", "no field"},
    {"MergesAreNull", [](json& f) { f["model"]["merges"] = nullptr; }, "model.merges", "a list"},
    {"MergeOfThree",
     [](json& f) {
       f["model"]["merges"][1] = {"a", "b", "c"};
     },
     "model.merges[1]", "two tokens"},
    {"MergeIsANumber", [](json& f) { f["model"]["merges"][1] = 3; }, "model.merges[1]",
     "two tokens"},
    {"MergePartIsANumber",
     [](json& f) {
       f["model"]["merges"][1] = {"a", 3};
     },
     "model.merges[1][1]", "a string"},
    {"MergeWithoutSpace", [](json& f) { f["model"]["merges"][1] = "abc"; }, "model.merges[1]",
     "two tokens"},
    {"MergeWithTwoSpaces", [](json& f) { f["model"]["merges"][1] = "a b c"; }, "model.merges[1]",
     "two tokens"},
    {"MergeOfNothing",
     [](json& f) {
       f["model"]["merges"][1] = {"", "ab"};
     },
     "model.merges[1]", "two tokens"},
    {"MergeWithEmptyEnd", [](json& f) { f["model"]["merges"][1] = "ab "; }, "model.merges[1]",
     "two tokens"},
    {"MergeOfUnknownToken",
     [](json& f) {
       f["model"]["merges"][1] = {"abd", "c"};
     },
     "model.merges[1]", "\"abd\""},
    {"MergeIntoUnknownToken",
     [](json& f) {
       f["model"]["merges"][1] = {"b", "a"};
     },
     "model.merges[1]", "\"ba\""},
    {"MergeTwice", [](json& f) { f["model"]["merges"][1] = "a b"; }, "model.merges[1]",
     "merges[0]"},
    {"Normalizer",
     [](json& f) {
       f["normalizer"] = {{"type", "NFC"}};
     },
     "normalizer", "NFC"},
    {"NormalizerSequence",
     [](json& f) {
       f["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFKC"}}}}};
     },
     "normalizer", "NFKC"},
    {"NoPreTokenizer", [](json& f) { f["pre_tokenizer"] = nullptr; }, "pre_tokenizer",
     "DeepSeek V3"},
    {"OtherPreTokenizer",
     [](json& f) {
       f["pre_tokenizer"] = {{"type", "Whitespace"}};
     },
     "pre_tokenizer.type", "\"Whitespace\""},
    {"TooFewSplits", [](json& f) { f["pre_tokenizer"]["pretokenizers"].erase(1); },
     "pre_tokenizer.pretokenizers", "three Splits"},
    {"OtherStep", [](json& f) { step(f, 1)["type"] = "Digits"; },
     "pre_tokenizer.pretokenizers[1].type", "\"Digits\""},
    {"OtherPattern", [](json& f) { step(f, 0)["pattern"]["Regex"] = "\\p{N}"; },
     "pre_tokenizer.pretokenizers[0].pattern.Regex", "expected \\p{N}{1,3}, found \\p{N}"},
    {"LiteralPattern",
     [](json& f) {
       step(f, 0)["pattern"] = {{"String", " "}};
     },
     "pre_tokenizer.pretokenizers[0].pattern.Regex", "no field"},
    {"OtherBehavior", [](json& f) { step(f, 2)["behavior"] = "Removed"; },
     "pre_tokenizer.pretokenizers[2].behavior", "\"Removed\""},
    {"Inverted", [](json& f) { step(f, 2)["invert"] = true; },
     "pre_tokenizer.pretokenizers[2].invert", "true"},
    {"OtherLastStep", [](json& f) { step(f, 3)["type"] = "Split"; },
     "pre_tokenizer.pretokenizers[3].type", "\"ByteLevel\""},
    {"PrefixSpace", [](json& f) { step(f, 3)["add_prefix_space"] = true; },
     "pre_tokenizer.pretokenizers[3].add_prefix_space", "true"},
    {"OwnRegex", [](json& f) { step(f, 3).erase("use_regex"); },
     "pre_tokenizer.pretokenizers[3].use_regex", "no field"},
    {"PostProcessor",
     [](json& f) {
       f["post_processor"] = {{"type", "TemplateProcessing"}};
     },
     "post_processor.type", "\"TemplateProcessing\""},
    {"NoDecoder", [](json& f) { f.erase("decoder"); }, "decoder", "no field"},
    {"OtherDecoder", [](json& f) { f["decoder"]["type"] = "Metaspace"; }, "decoder.type",
     "\"Metaspace\""},
    {"AddedTokensAreAnObject", [](json& f) { f["added_tokens"] = json::object(); }, "added_tokens",
     "a list"},
    {"AddedWithoutId", [](json& f) { f["added_tokens"][0].erase("id"); }, "added_tokens[0].id",
     "no field"},
    {"AddedWithoutContent", [](json& f) { f["added_tokens"][0].erase("content"); },
     "added_tokens[0].content", "no field"},
    {"AddedEmpty", [](json& f) { f["added_tokens"][0]["content"] = ""; }, "added_tokens[0].content",
     "\"\""},
    {"AddedNegativeId", [](json& f) { f["added_tokens"][0]["id"] = -5; }, "added_tokens[0].id",
     "-5"},
    {"AddedSingleWord", [](json& f) { f["added_tokens"][0]["single_word"] = true; },
     "added_tokens[0].single_word", "true"},
    {"AddedStripsLeft", [](json& f) { f["added_tokens"][0]["lstrip"] = true; },
     "added_tokens[0].lstrip", "true"},
    {"AddedStripsRight", [](json& f) { f["added_tokens"][0]["rstrip"] = true; },
     "added_tokens[0].rstrip", "true"},
    {"AddedTwice", [](json& f) { f["added_tokens"].push_back(test::added_token(301, "<think>")); },
     "added_tokens[1].content", "added_tokens[0]"},
    {"AddedIdTwice", [](json& f) { f["added_tokens"].push_back(test::added_token(300, "<x>")); },
     "added_tokens[1].id", "<think>"},
    {"AddedIdOfAVocabularyToken", [](json& f) { f["added_tokens"][0]["id"] = 256; },
     "added_tokens[0].id", "\"ab\""},
    {"AddedWithTwoIds", [](json& f) { f["added_tokens"][0]["content"] = "ab"; },
     "added_tokens[0].id", "256, its id in the vocabulary"},
};

class TokenizerFileDefect : public testing::TestWithParam<Defect> {};

TEST_P(TokenizerFileDefect, IsNamed) {
  json file = valid();
  GetParam().make(file);
  EXPECT_THAT(error_of(file.dump()),
              AllOf(StartsWith("tokenizer.json: "), HasSubstr(GetParam().field),
                    HasSubstr("expected"), HasSubstr(GetParam().says)));
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerFileDefect, testing::ValuesIn(kDefects),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(TokenizerFile, AcceptsWhatTheDefectsAreMadeFrom) {
  const TokenizerFile file = parse_tokenizer_file(valid().dump(), "tokenizer.json");
  EXPECT_EQ(file.vocabulary.size(), 258U);
  EXPECT_EQ(file.merges.size(), 2U);
  EXPECT_EQ(file.merges[1].result, 257);
  EXPECT_EQ(file.added_tokens.size(), 1U);
  EXPECT_FALSE(file.ignore_merges);
}

TEST(TokenizerFile, RefusesTextThatIsNotJson) {
  const std::string whole = valid().dump();
  for (const std::string& text :
       {std::string(), std::string("{"), whole.substr(0, whole.size() / 2), whole + "x",
        std::string("\xFF"), std::string(100000, '[')}) {
    EXPECT_THAT(error_of(text), StartsWith("tokenizer.json: expected JSON, found "));
  }
}

TEST(TokenizerFile, RefusesATokenListedTwice) {
  std::string text = valid().dump();
  text.insert(text.find("\"vocab\":{") + 9, "\"ab\":400,");
  EXPECT_THAT(error_of(text), AllOf(HasSubstr("model.vocab.ab"), HasSubstr("two of this token")));
}

TEST(TokenizerFile, LongValuesAreShortenedInErrors) {
  json file = valid();
  file["normalizer"] = std::string(100000, 'x');
  EXPECT_LT(error_of(file.dump()).size(), 300U);
}

// The spellings of the published file.
TEST(TokenizerFile, AcceptsTheOtherSpellings) {
  json file = valid();
  std::string pattern = step(file, 2)["pattern"]["Regex"];
  for (const auto& [escape, character] : {std::pair{"\\r", "\r"}, {"\\n", "\n"}}) {
    for (std::size_t at; (at = pattern.find(escape)) != std::string::npos;) {
      pattern.replace(at, 2, character);
    }
  }
  ASSERT_NE(pattern, kSplitPatterns[2]);
  step(file, 2)["pattern"]["Regex"] = pattern;
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", json::array()}};
  file["post_processor"] = {{"type", "ByteLevel"}, {"trim_offsets", false}};
  file["model"]["merges"] = {"a b", "ab c"};
  file["model"]["dropout"] = nullptr;
  file["model"]["continuing_subword_prefix"] = "";
  EXPECT_EQ(parse_tokenizer_file(file.dump(), "tokenizer.json").merges[1].result, 257);
}

TEST(TokenizerFile, LoadingNamesThePath) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "tokenizer.json";
  json file = valid();
  file["model"].erase("merges");
  std::ofstream(path) << file;
  try {
    Tokenizer::load(path);
    FAIL() << "no exception";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(path.string() + ": model.merges: "));
  }
}

}  // namespace
}  // namespace cupel

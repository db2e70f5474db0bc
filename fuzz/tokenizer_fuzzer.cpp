// Arbitrary bytes as a tokenizer.json, and as text of a small tokenizer.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "cupel/base/error.h"
#include "cupel/text/byte_alphabet.h"
#include "cupel/text/pretokenizer.h"
#include "cupel/text/stop_strings.h"
#include "cupel/text/tokenizer.h"
#include "cupel/text/utf8.h"

namespace {

// JSON string of any text: every character that JSON reserves becomes an escape.
std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// A token for every byte, some merges, and added tokens that are starts of one another.
cupel::Tokenizer small_tokenizer() {
  std::string vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary += json_string(cupel::byte_to_alphabet(static_cast<std::uint8_t>(byte))) + ":" +
                  std::to_string(byte) + ",";
  }
  std::string splits;
  for (const std::string_view pattern : cupel::kSplitPatterns) {
    splits += R"({"type":"Split","pattern":{"Regex":)" + json_string(pattern) +
              R"(},"behavior":"Isolated","invert":false},)";
  }
  const std::string json =
      R"({"added_tokens":[{"id":300,"content":"<a"},{"id":301,"content":"<a>"},)"
      R"({"id":302,"content":"a>","normalized":true}],"pre_tokenizer":{"type":"Sequence",)"
      R"("pretokenizers":[)" +
      splits +
      R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]},)"
      R"("decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{)" +
      vocabulary +
      R"("ee":256,"eee":257,"the":258,"he":259},"merges":["e e","e ee","h e",["t","he"]]}})";
  return {json, "built-in"};
}

// A crash is what the fuzzer looks for: a broken promise ends in one too.
void require(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    const cupel::Tokenizer tokenizer(input, "input");
    require(tokenizer.decode(tokenizer.encode(input)) == input);
  } catch (const cupel::InputError&) {
    // The only way to refuse a file.
  }

  static const cupel::Tokenizer small = small_tokenizer();
  const auto ids = small.encode(input);
  require(small.decode(ids) == input);
  for (const std::int32_t id : ids) require(small.has_token(id));

  const std::string shown = cupel::to_valid_utf8(input);
  require(cupel::valid_utf8_prefix(shown) == shown);

  const std::size_t cut = std::min(size / 4, std::size_t{16});
  if (cut == 0) return 0;
  cupel::StopMatcher matcher({std::string(input.substr(0, cut)), "the"});
  std::size_t safe = 0;
  for (std::size_t at = cut; at < size; at += cut) {
    matcher.feed(input.substr(at, cut));
    require(matcher.safe_length() >= safe && matcher.safe_length() <= matcher.text_length());
    safe = matcher.safe_length();
  }
  return 0;
}

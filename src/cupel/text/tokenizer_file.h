// Reads tokenizer.json and checks that it is of the supported family (spec section 6.1).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cupel/text/byte_pair_encoder.h"

namespace cupel {

struct TokenizerFile {
  struct AddedToken {
    std::int32_t id;
    std::string text;
    bool normalized;
  };
  // All ids are in [0, 2^31 - 2]. No token and no id occurs twice in a list; an id or text that is
  // in both lists is the same token in both.
  std::vector<std::pair<std::string, std::int32_t>> vocabulary;
  std::array<std::int32_t, 256> byte_ids;      // the token of each byte alone
  std::vector<BytePairEncoder::Merge> merges;  // by rank, no pair twice
  std::vector<AddedToken> added_tokens;
  bool ignore_merges = false;
};

// `where` is the file named in errors. Throws InputError naming the field for text that is not
// JSON, a missing field or a wrong type, ids out of range or used twice, a byte without a token, a
// merge of or into an unknown token, and everything this family does not have: another model,
// normaliser, pre-tokeniser or decoder, added tokens that match more than their own text.
// "truncation" and "padding" are not read: they are a caller's business.
TokenizerFile parse_tokenizer_file(std::string_view json, std::string_view where);

}  // namespace cupel

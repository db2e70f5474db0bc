// Byte-level BPE straight from a tokenizer.json (spec section 6.1).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cupel {

class Tokenizer {
 public:
  // Parses tokenizer.json text; `where` is the file named in errors. Throws InputError naming the
  // field for anything this tokenizer family does not have (no merges, another model type, ...).
  Tokenizer(std::string_view json, std::string_view where);
  static Tokenizer load(const std::filesystem::path& file);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Added tokens are cut out of the raw text first, longest match first; the rest goes through the
  // pre-tokeniser and BPE. Adds no BOS. Any bytes are accepted: invalid UTF-8 is encoded byte by
  // byte, so decode(encode(x)) == x for every x.
  std::vector<std::int32_t> encode(std::string_view text) const;

  // The bytes of the ids, added tokens included as their text. Ids without a token decode to
  // nothing. The result may end inside a UTF-8 sequence.
  std::string decode(std::span<const std::int32_t> ids) const;
  std::string_view token_bytes(std::int32_t id) const;

  // True if a token has this id. Rows of the embedding without a token are never sampled.
  bool has_token(std::int32_t id) const;
  // True for the tokens of the added_tokens list.
  bool is_added(std::int32_t id) const;
  // One more than the largest id.
  std::int32_t id_limit() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cupel

#include "cupel/text/tokenizer.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "cupel/base/file.h"
#include "cupel/text/added_tokens.h"
#include "cupel/text/byte_alphabet.h"
#include "cupel/text/byte_pair_encoder.h"
#include "cupel/text/pretokenizer.h"
#include "cupel/text/tokenizer_file.h"

namespace cupel {
namespace {

struct Token {
  std::int32_t id;
  bool added;
  std::string bytes;
};

// By ascending id. A token of both lists is an added one.
std::vector<Token> make_tokens(const TokenizerFile& file) {
  std::vector<Token> tokens;
  tokens.reserve(file.vocabulary.size() + file.added_tokens.size());
  for (const auto& token : file.added_tokens) tokens.push_back({token.id, true, token.text});
  for (const auto& [text, id] : file.vocabulary) {
    // Text with characters outside the alphabet can only be meant as it stands.
    tokens.push_back({id, false, alphabet_to_bytes(text).value_or(text)});
  }
  std::stable_sort(tokens.begin(), tokens.end(),
                   [](const Token& a, const Token& b) { return a.id < b.id; });
  const auto same_id = [](const Token& a, const Token& b) { return a.id == b.id; };
  tokens.erase(std::unique(tokens.begin(), tokens.end(), same_id), tokens.end());
  return tokens;
}

}  // namespace

struct Tokenizer::Impl {
  explicit Impl(const TokenizerFile& file)
      : tokens(make_tokens(file)), encoder(file.byte_ids, file.merges) {
    for (const auto& token : file.added_tokens) {
      matchers[token.normalized ? 1 : 0].add(token.text, token.id);
    }
    if (!file.ignore_merges) return;
    for (const auto& [text, id] : file.vocabulary) {
      if (auto bytes = alphabet_to_bytes(text)) whole_pieces.emplace(std::move(*bytes), id);
    }
  }

  const Token* find(std::int32_t id) const {
    if (id < 0) return nullptr;
    // Vocabularies are dense or nearly so.
    const auto guess = static_cast<std::size_t>(id);
    if (guess < tokens.size() && tokens[guess].id == id) return &tokens[guess];
    const auto found =
        std::lower_bound(tokens.begin(), tokens.end(), id,
                         [](const Token& token, std::int32_t value) { return token.id < value; });
    return found != tokens.end() && found->id == id ? &*found : nullptr;
  }

  void encode_plain(std::string_view text, BytePairEncoder::Workspace& workspace,
                    std::vector<std::int32_t>& ids) const {
    for (const std::string_view piece : pretokenize(text)) {
      if (!whole_pieces.empty()) {
        if (const auto whole = whole_pieces.find(std::string(piece)); whole != whole_pieces.end()) {
          ids.push_back(whole->second);
          continue;
        }
      }
      encoder.encode(piece, workspace, ids);
    }
  }

  // Cuts the added tokens of matcher `level` and those after it, then encodes what is left.
  void encode(std::string_view text, std::size_t level, BytePairEncoder::Workspace& workspace,
              std::vector<std::int32_t>& ids) const {
    if (level == matchers.size()) return encode_plain(text, workspace, ids);
    std::size_t position = 0;
    AddedTokenMatcher::Match match;
    while (matchers[level].find(text, position, match)) {
      encode(text.substr(position, match.begin - position), level + 1, workspace, ids);
      ids.push_back(match.id);
      position = match.end;
    }
    encode(text.substr(position), level + 1, workspace, ids);
  }

  std::vector<Token> tokens;
  BytePairEncoder encoder;
  // Tokens with "normalized": true are looked for only between those without. There is no
  // normaliser, so that is all the flag does.
  std::array<AddedTokenMatcher, 2> matchers;
  // With ignore_merges a piece that is a token needs no merges to become it.
  std::unordered_map<std::string, std::int32_t> whole_pieces;
};

Tokenizer::Tokenizer(std::string_view json, std::string_view where)
    : impl_(std::make_unique<Impl>(parse_tokenizer_file(json, where))) {}

Tokenizer Tokenizer::load(const std::filesystem::path& file) {
  return {read_file(file), file.string()};
}

Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  BytePairEncoder::Workspace workspace;
  impl_->encode(text, 0, workspace, ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string bytes;
  for (const std::int32_t id : ids) bytes += token_bytes(id);
  return bytes;
}

std::string_view Tokenizer::token_bytes(std::int32_t id) const {
  const Token* token = impl_->find(id);
  return token == nullptr ? std::string_view() : token->bytes;
}

bool Tokenizer::has_token(std::int32_t id) const {
  return impl_->find(id) != nullptr;
}

bool Tokenizer::is_added(std::int32_t id) const {
  const Token* token = impl_->find(id);
  return token != nullptr && token->added;
}

std::int32_t Tokenizer::id_limit() const {
  return impl_->tokens.back().id + 1;
}

}  // namespace cupel

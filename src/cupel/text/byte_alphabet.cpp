#include "cupel/text/byte_alphabet.h"

#include <array>

#include "cupel/text/utf8.h"

namespace cupel {
namespace {

constexpr char32_t kFirstStandIn = 0x100;
constexpr int kStandIns = 68;

constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

struct Alphabet {
  std::array<char32_t, 256> character{};
  std::array<std::uint8_t, kStandIns> stood_in{};
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  int used = 0;
  for (int byte = 0; byte < 256; ++byte) {
    if (stands_for_itself(byte)) {
      alphabet.character[byte] = static_cast<char32_t>(byte);
    } else {
      alphabet.character[byte] = kFirstStandIn + static_cast<char32_t>(used);
      alphabet.stood_in[used++] = static_cast<std::uint8_t>(byte);
    }
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string byte_to_alphabet(std::uint8_t byte) {
  const char32_t character = kAlphabet.character[byte];
  if (character < 0x80) return {static_cast<char>(character)};
  return {static_cast<char>(0xC0 | character >> 6), static_cast<char>(0x80 | (character & 0x3F))};
}

std::optional<std::string> alphabet_to_bytes(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t position = 0; position < text.size();) {
    const Utf8Sequence sequence = decode_utf8(text, position);
    if (sequence.kind != Utf8Sequence::Kind::kValid) return std::nullopt;
    position += sequence.length;
    const char32_t character = sequence.code_point;
    if (character < kFirstStandIn && stands_for_itself(static_cast<int>(character))) {
      bytes += static_cast<char>(character);
    } else if (character >= kFirstStandIn && character < kFirstStandIn + kStandIns) {
      bytes += static_cast<char>(kAlphabet.stood_in[character - kFirstStandIn]);
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

}  // namespace cupel

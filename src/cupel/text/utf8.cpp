#include "cupel/text/utf8.h"

namespace cupel {
namespace {

using Kind = Utf8Sequence::Kind;

// What the first byte says: the length, its own bits, and the range of the second byte, which is
// where overlong forms, surrogates and values above U+10FFFF are told apart.
struct Lead {
  std::uint8_t length;  // 0: no sequence starts with this byte
  std::uint8_t bits;
  std::uint8_t second_low = 0x80;
  std::uint8_t second_high = 0xBF;
};

Lead classify_lead(std::uint8_t byte) {
  if (byte < 0x80) return {1, byte};
  if (byte < 0xC2) return {0, 0};
  if (byte < 0xE0) return {2, static_cast<std::uint8_t>(byte & 0x1F)};
  if (byte < 0xF0) {
    Lead lead{3, static_cast<std::uint8_t>(byte & 0x0F)};
    if (byte == 0xE0) lead.second_low = 0xA0;
    if (byte == 0xED) lead.second_high = 0x9F;
    return lead;
  }
  if (byte < 0xF5) {
    Lead lead{4, static_cast<std::uint8_t>(byte & 0x07)};
    if (byte == 0xF0) lead.second_low = 0x90;
    if (byte == 0xF4) lead.second_high = 0x8F;
    return lead;
  }
  return {0, 0};
}

}  // namespace

Utf8Sequence decode_utf8(std::string_view text, std::size_t position) {
  const Lead lead = classify_lead(static_cast<std::uint8_t>(text[position]));
  if (lead.length == 0) return {Kind::kInvalid, 1, 0};
  char32_t code_point = lead.bits;
  for (std::uint8_t i = 1; i < lead.length; ++i) {
    if (position + i >= text.size()) return {Kind::kUnfinished, i, 0};
    const auto byte = static_cast<std::uint8_t>(text[position + i]);
    const std::uint8_t low = i == 1 ? lead.second_low : 0x80;
    const std::uint8_t high = i == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) return {Kind::kInvalid, i, 0};
    code_point = code_point << 6 | (byte & 0x3F);
  }
  return {Kind::kValid, lead.length, code_point};
}

std::string_view valid_utf8_prefix(std::string_view text) {
  std::size_t position = 0;
  while (position < text.size()) {
    const Utf8Sequence sequence = decode_utf8(text, position);
    if (sequence.kind != Kind::kValid) break;
    position += sequence.length;
  }
  return text.substr(0, position);
}

std::string_view complete_utf8_prefix(std::string_view text) {
  // An unfinished sequence has at most three bytes; a sequence inside it would be a valid one.
  for (std::size_t tail = 1; tail <= 3 && tail <= text.size(); ++tail) {
    const std::size_t position = text.size() - tail;
    const Utf8Sequence sequence = decode_utf8(text, position);
    if (sequence.kind == Kind::kUnfinished) return text.substr(0, position);
    if (sequence.kind == Kind::kValid) break;
  }
  return text;
}

std::string to_valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::size_t position = 0;
  while (position < text.size()) {
    const std::string_view valid = valid_utf8_prefix(text.substr(position));
    out += valid;
    position += valid.size();
    if (position == text.size()) break;
    out += "\xEF\xBF\xBD";
    position += decode_utf8(text, position).length;
  }
  return out;
}

}  // namespace cupel

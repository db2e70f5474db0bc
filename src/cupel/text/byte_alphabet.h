// The byte-level alphabet of GPT-2: every byte has one printable character, so that any bytes can
// be written as vocabulary text. Printable Latin-1 bytes stand for themselves; the other 68 map, in
// ascending order, to U+0100 and up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cupel {

// The character of a byte, as UTF-8.
std::string byte_to_alphabet(std::uint8_t byte);

// The bytes that vocabulary text stands for; nothing if a character is not of the alphabet.
std::optional<std::string> alphabet_to_bytes(std::string_view text);

}  // namespace cupel

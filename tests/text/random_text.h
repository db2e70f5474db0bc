// Random texts from a fixed seed: the same on every machine.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>

namespace cupel::test {

class RandomText {
 public:
  explicit RandomText(std::uint64_t seed) : generator_(seed) {}

  // Uniform up to the bias of a 64-bit remainder, in [0, count).
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(generator_() % count); }

  std::string bytes(std::size_t length) {
    std::string text;
    while (text.size() < length) text += static_cast<char>(below(256));
    return text;
  }

  // `count` characters or strings of the list.
  std::string pick(std::span<const std::string_view> list, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += list[below(list.size())];
    return text;
  }

  // Any code point but a surrogate; small ones as often as large ones.
  char32_t code_point() {
    for (;;) {
      const char32_t c = static_cast<char32_t>(below(std::size_t{1} << (7 + below(15))));
      if (c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF)) return c;
    }
  }

 private:
  std::mt19937_64 generator_;
};

inline std::string to_utf8(char32_t c) {
  std::string text;
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xC0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    text += static_cast<char>(0xE0 | c >> 12);
    tail(6), tail(0);
  } else {
    text += static_cast<char>(0xF0 | c >> 18);
    tail(12), tail(6), tail(0);
  }
  return text;
}

}  // namespace cupel::test

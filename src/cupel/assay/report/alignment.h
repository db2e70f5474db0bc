// Two answers side by side from the place where they part.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cupel {

// Length in bytes of the longest common prefix of two texts of valid UTF-8 that ends between
// characters in both: never inside a sequence, nor before a mark of no width that belongs to the
// character before it.
std::size_t common_prefix(std::string_view a, std::string_view b);

// The first index at which the lists differ, or where the shorter ends; nullopt if they are equal.
std::optional<int> first_different_token(std::span<const std::int32_t> a,
                                         std::span<const std::int32_t> b);

// What a report shows of two texts. All parts are printable (printable.h) and end between
// characters; the whole texts are in the records.
struct Alignment {
  bool same = false;       // the texts are equal
  std::size_t offset = 0;  // bytes of printable text before the difference
  std::string before;      // the end of the common text
  bool before_cut = false;
  std::string reference;  // from the difference on
  bool reference_cut = false;
  std::string candidate;
  bool candidate_cut = false;
};

inline constexpr std::size_t kBytesBefore = 240;
inline constexpr std::size_t kBytesAfter = 600;

// Any bytes may be given.
Alignment align(std::string_view reference, std::string_view candidate);

}  // namespace cupel

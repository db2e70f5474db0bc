// Items that a comparison lost or gained, with the two answers and where they part.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cupel/assay/report/alignment.h"
#include "cupel/eval/record.h"

namespace cupel {

// The two largest logits nearer than this are a near-tie: one step of bf16 at a logit between 32
// and 64, which is what a different order of summation can move.
inline constexpr float kNearTie = 0.25F;

enum class NearTie {
  kYes,
  kNo,
  kUnknown,  // records keep the smallest margin of an answer, which was at another token
};

std::string_view near_tie_name(NearTie near_tie);  // "yes", "no", "unknown"

struct FlippedAnswer {
  int repeat = 0;
  bool correct = false;
  std::optional<std::int64_t> extracted;
  StopReason stop_reason = StopReason::kEos;
  // Record::min_margin; nullopt where the target did not tell.
  std::optional<float> min_margin;
  int min_margin_step = -1;
};

struct Flip {
  int item = 0;
  bool lost = false;     // worse in the candidate; else gained
  double change = 0;     // D of the item: share right in the reference less that in the candidate
  std::string question;  // prompt hash
  // Absent for results of other tools, which do not tell it.
  std::optional<std::int64_t> gold;
  // The first repeats that show the flip: right in one arm, wrong in the other.
  FlippedAnswer reference;
  FlippedAnswer candidate;
  Alignment text;
  std::optional<int> token;  // the first differing token, from 0; absent without token ids
  // Was the choice of that token a near-tie in either arm? Both arms had the same text before it.
  NearTie near_tie = NearTie::kUnknown;
};

// One sentence about the margin of an answer at the token where it parts from the other.
std::string margin_sentence(const FlippedAnswer& answer, std::optional<int> token);

// By ascending item. The records of both cells hold the same items, as compare() has checked.
std::vector<Flip> find_flips(std::span<const Record> reference, std::span<const Record> candidate);

}  // namespace cupel

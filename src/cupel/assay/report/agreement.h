// How often two cells give the same text and the same answer.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cupel/assay/noise.h"

namespace cupel {

// Over all items and all pairs of a repeat of one cell with a repeat of the other. Independent
// pairs: items * the smaller number of repeats. Intervals as for Agreement.
struct CellAgreement {
  std::size_t a = 0;  // indices of the cells; a < b
  std::size_t b = 0;
  Agreement text;
  std::optional<Agreement> answer;  // where answers were extracted
};

// `where` names the pair in errors. Throws InputError if the cells hold different items.
Agreement text_agreement_between(std::span<const Record> a, std::span<const Record> b,
                                 const std::string& where);
Agreement answer_agreement_between(std::span<const Record> a, std::span<const Record> b,
                                   const std::string& where);

// True if any record has an extracted answer.
bool has_answers(std::span<const Record> records);

}  // namespace cupel

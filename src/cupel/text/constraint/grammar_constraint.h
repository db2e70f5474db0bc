// A grammar and a vocabulary as a constraint on tokens.
#pragma once

#include <memory>
#include <string_view>

#include "cupel/text/constraint/grammar.h"
#include "cupel/text/constraint/vocabulary.h"
#include "cupel/text/token_constraint.h"

namespace cupel {

// Masks are computed when they are first needed and kept, for all requests that share the
// constraint; it may be used by many threads. The shortest output is the one of the fewest bytes
// (ties to the earlier alternative, then to the lower byte) in the fewest tokens. Throws
// InputError, naming `where`, if no finite text has the form or the shortest is longer than
// kMaxShortestBytes.
std::shared_ptr<const TokenConstraint> make_constraint(
    Grammar grammar, std::shared_ptr<const ConstraintVocabulary> vocabulary,
    std::string_view where);
inline constexpr std::uint32_t kMaxShortestBytes = 65536;

}  // namespace cupel

// A constraint that begins late: reasoning is free, what comes after it has a form.
#pragma once

#include <cstdint>
#include <memory>

#include "cupel/text/token_constraint.h"

namespace cupel {

// Any tokens of ids below `id_limit`, then `marker` (of </think>, say), then what `rest` allows.
// Near the limit only the marker is left, so that the rest still fits. A token that is to end the
// output must not be the marker; before it the engine lets none come.
std::shared_ptr<const TokenConstraint> after_token(std::int32_t marker, std::int32_t id_limit,
                                                   std::shared_ptr<const TokenConstraint> rest);

}  // namespace cupel

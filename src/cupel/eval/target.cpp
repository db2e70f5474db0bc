#include "cupel/eval/target.h"

#include "cupel/base/error.h"

namespace cupel {

std::vector<TextLikelihood> Target::likelihoods(std::span<const std::string>) {
  throw InputError("target", "log probabilities of a prompt", "a target that has none");
}

}  // namespace cupel

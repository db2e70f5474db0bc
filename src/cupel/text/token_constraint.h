// What an output must look like, as the tokens that may come next. The engine asks; text/constraint
// makes one of a JSON schema, or of fixed text around several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace cupel {

// Where one output stands. It is a function of the tokens taken and nothing else.
class ConstraintState {
 public:
  virtual ~ConstraintState() = default;

  // The tokens that may come next, where `room` tokens may still come before the one that ends the
  // output: token id is bit id % 64 of word id / 64; ids beyond the words may not come. After each
  // of them the output can be complete within room - 1 further tokens: near the limit only the
  // shortest completion is left. Empty words or no bit: nothing may follow. `room` is at least
  // TokenConstraint::shortest() at first and then falls by one a token. Valid until the next call.
  virtual std::span<const std::uint64_t> allowed(std::size_t room) = 0;

  // Takes one of the tokens that allowed() gave.
  virtual void advance(std::int32_t id) = 0;

  // Whether the output is complete as it is, so that it may end here.
  virtual bool can_end() const = 0;
};

// The rule itself: immutable, shared by requests and threads. It must outlive its states.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  // A fresh output.
  virtual std::unique_ptr<ConstraintState> start() const = 0;
  // Tokens of the shortest output, without the one that ends it.
  virtual std::size_t shortest() const = 0;
  // Whether a complete output may need the token, so that it must not be one that ends the output.
  virtual bool uses(std::int32_t id) const = 0;
};

}  // namespace cupel

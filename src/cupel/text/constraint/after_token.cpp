#include "cupel/text/constraint/after_token.h"

#include <utility>
#include <vector>

namespace cupel {
namespace {

using Mask = std::vector<std::uint64_t>;

Mask mask_of(std::int32_t first, std::int32_t end) {
  Mask mask((static_cast<std::size_t>(end) + 63) / 64);
  for (std::int32_t id = first; id < end; ++id) {
    mask[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (id % 64);
  }
  return mask;
}

class AfterTokenState : public ConstraintState {
 public:
  AfterTokenState(std::int32_t marker, const Mask& any, const Mask& only_marker, std::size_t needed,
                  std::unique_ptr<ConstraintState> rest)
      : marker_(marker),
        any_(any),
        only_marker_(only_marker),
        needed_(needed),
        rest_(std::move(rest)) {}

  std::span<const std::uint64_t> allowed(std::size_t room) override {
    if (begun_) return rest_->allowed(room);
    return room > needed_ ? any_ : only_marker_;
  }
  void advance(std::int32_t id) override {
    if (begun_) {
      rest_->advance(id);
    } else {
      begun_ = id == marker_;
    }
  }
  bool can_end() const override { return begun_ && rest_->can_end(); }

 private:
  std::int32_t marker_;
  const Mask& any_;
  const Mask& only_marker_;
  std::size_t needed_;  // tokens: the marker and the shortest rest
  std::unique_ptr<ConstraintState> rest_;
  bool begun_ = false;
};

class AfterToken : public TokenConstraint {
 public:
  AfterToken(std::int32_t marker, std::int32_t id_limit,
             std::shared_ptr<const TokenConstraint> rest)
      : marker_(marker),
        any_(mask_of(0, id_limit)),
        only_marker_(mask_of(marker, marker + 1)),
        rest_(std::move(rest)) {}

  std::unique_ptr<ConstraintState> start() const override {
    return std::make_unique<AfterTokenState>(marker_, any_, only_marker_, shortest(),
                                             rest_->start());
  }
  std::size_t shortest() const override { return rest_->shortest() + 1; }
  bool uses(std::int32_t id) const override { return id == marker_ || rest_->uses(id); }

 private:
  std::int32_t marker_;
  Mask any_, only_marker_;
  std::shared_ptr<const TokenConstraint> rest_;
};

}  // namespace

std::shared_ptr<const TokenConstraint> after_token(std::int32_t marker, std::int32_t id_limit,
                                                   std::shared_ptr<const TokenConstraint> rest) {
  return std::make_shared<AfterToken>(marker, id_limit, std::move(rest));
}

}  // namespace cupel

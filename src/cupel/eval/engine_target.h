// The engine of this process as a target of an evaluation.
#pragma once

#include "cupel/engine/engine.h"
#include "cupel/eval/target.h"

namespace cupel {

class EngineTarget final : public Target {
 public:
  explicit EngineTarget(Engine& engine) : engine_(engine) {}

  void complete(std::span<const CompletionRequest> requests, int concurrency,
                const std::function<void(std::size_t, const Completion&)>& done) override;
  std::vector<TextLikelihood> likelihoods(std::span<const std::string> texts) override;
  std::string model_fingerprint() const override { return engine_.fingerprint(); }

 private:
  Engine& engine_;
};

}  // namespace cupel

// Backend `reference`: fake-quantised rows held in fp32 (spec 3.5.6), FP4 index keys with bf16
// scores; window by ascending position, then entries; one maximum over the whole list (spec 3.9).
#pragma once

#include "cupel/attention/staged_backend.h"

namespace cupel {

class ReferenceBackend final : public StagedBackend {
 public:
  ReferenceBackend(ThreadPool& pool, Numerics numerics, const ModelConfig& config);

 protected:
  void list_keys(const QueryKeys& keys, std::vector<const float*>& list) const override;
  void attend_row(const AttendRowParams& params) const override;
};

}  // namespace cupel

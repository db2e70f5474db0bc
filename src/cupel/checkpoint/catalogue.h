// The tensor catalogue: what a configuration calls for, name by name, and how each tensor may be
// stored (spec sections 2.2-2.4, 2.7). A table; the comparison with a folder is in
// catalogue_check.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cupel/checkpoint/config.h"
#include "cupel/checkpoint/safetensors.h"

namespace cupel {

enum class Encoding {
  kPlain,      // one dtype, no scale
  kFp8,        // F8_E4M3, one scale for each block of 128 x 128
  kFp8OrBf16,  // kFp8, or BF16 without scale
  kExpert,     // FP4 (I8, two elements a byte, one scale for 1 x 32), kFp8, or BF16 without scale
};

struct ExpectedTensor {
  std::string name;
  std::string role;                 // for example "routed expert w1"
  std::vector<std::int64_t> shape;  // of the elements: [out, in] for a matrix, whatever its packing
  Encoding encoding = Encoding::kPlain;
  Dtype dtype = Dtype::kF32;  // of kPlain
};

// One legal way to store a tensor. A scale lies beside it under scale_name(), as F8_E8M0 or F32.
struct Storage {
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> scale_shape;  // empty: no scale

  // Of the tensor and its scale, scales as F8_E8M0.
  std::uint64_t bytes() const;
  int tensors() const { return scale_shape.empty() ? 1 : 2; }
};

// All of them; for kExpert in the order of ExpertDtype.
std::vector<Storage> legal_storages(const ExpectedTensor& tensor);

// "layers.0.attn.wq_a.weight" -> "layers.0.attn.wq_a.scale".
std::string scale_name(std::string_view weight_name);

using ExpectedTensorVisitor = std::function<void(const ExpectedTensor&)>;

// The tensors of the main network outside its layers; those of one layer.
void visit_trunk_tensors(const ModelConfig& config, const ExpectedTensorVisitor& visit);
void visit_layer_tensors(const ModelConfig& config, int layer, const ExpectedTensorVisitor& visit);

// One stage of the drafter, `mtp.STAGE.*`; nothing for DrafterKind::kNone. The first DSpark stage
// holds the projection of the target's states, the last one the heads.
void visit_drafter_tensors(const ModelConfig& config, int stage, int stages,
                           const ExpectedTensorVisitor& visit);

}  // namespace cupel

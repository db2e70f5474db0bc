#include "cupel/model/weights.h"

#include <cstring>
#include <string>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/formats/bf16.h"
#include "cupel/formats/e8m0.h"

namespace cupel {
namespace {

std::size_t size(int n) {
  return static_cast<std::size_t>(n);
}

// Tensors may stand at any byte offset: elements are copied out.
template <typename T>
std::vector<T> elements(const Tensor& tensor) {
  std::vector<T> values(tensor.data.size() / sizeof(T));
  std::memcpy(values.data(), tensor.data.data(), values.size() * sizeof(T));
  return values;
}

std::span<const std::uint8_t> codes(const Tensor& tensor) {
  return {reinterpret_cast<const std::uint8_t*>(tensor.data.data()), tensor.data.size()};
}

// A BF16 or F32 tensor as fp32.
std::vector<float> floats(const Tensor& tensor) {
  if (tensor.dtype == Dtype::kF32) return elements<float>(tensor);
  std::vector<float> values;
  for (const std::uint16_t bits : elements<std::uint16_t>(tensor)) {
    values.push_back(bf16_to_float(bits));
  }
  return values;
}

class Loader {
 public:
  explicit Loader(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  std::vector<float> vector(const std::string& name) const {
    return floats(checkpoint_.tensor(name));
  }

  // A linear weight in whatever form it is stored, its rows [row, row + rows) only (0 = all).
  PackedMatrix matrix(const std::string& prefix, std::size_t row = 0, std::size_t rows = 0) {
    const Tensor& weight = checkpoint_.tensor(prefix + ".weight");
    if (rows == 0) rows = size(static_cast<int>(weight.shape[0]));
    const auto stored_k = static_cast<std::size_t>(weight.shape[1]);
    PackedMatrix packed;
    switch (weight.dtype) {
      case Dtype::kI8:
        packed = fp4(prefix, weight, row, rows, stored_k * 2);
        break;
      case Dtype::kF8E4M3:
        packed = fp8(prefix, weight, row, rows, stored_k);
        break;
      case Dtype::kBF16: {
        const auto values = elements<std::uint16_t>(weight);
        packed = PackedMatrix::bf16(rows, stored_k,
                                    std::span(values).subspan(row * stored_k, rows * stored_k));
        break;
      }
      default: {
        const auto values = elements<float>(weight);
        packed = PackedMatrix::f32(rows, stored_k,
                                   std::span(values).subspan(row * stored_k, rows * stored_k));
      }
    }
    bytes_ += packed.bytes();
    return packed;
  }

  HyperWeights hyper(const std::string& prefix) {
    const Tensor& fn = checkpoint_.tensor(prefix + "_fn");
    HyperWeights w{.fn = PackedMatrix::f32(size(static_cast<int>(fn.shape[0])),
                                           size(static_cast<int>(fn.shape[1])), floats(fn)),
                   .base = vector(prefix + "_base"),
                   .scale = vector(prefix + "_scale")};
    bytes_ += w.fn.bytes();
    return w;
  }

  CompressorWeights compressor(const std::string& prefix) {
    return {.wkv = matrix(prefix + ".wkv"),
            .wgate = matrix(prefix + ".wgate"),
            .ape = vector(prefix + ".ape"),
            .norm = vector(prefix + ".norm.weight")};
  }

  ExpertWeights expert(const std::string& prefix) {
    return {
        .w1 = matrix(prefix + ".w1"), .w3 = matrix(prefix + ".w3"), .w2 = matrix(prefix + ".w2")};
  }

  AttentionWeights attention(const std::string& prefix, LayerKind kind) {
    const ModelConfig& config = checkpoint_.config();
    AttentionWeights w;
    w.wq_a = matrix(prefix + "wq_a");
    w.wq_b = matrix(prefix + "wq_b");
    w.wkv = matrix(prefix + "wkv");
    for (std::size_t g = 0; g < size(config.o_groups); ++g) {
      const std::size_t rank = size(config.o_lora_rank);
      w.wo_a.push_back(matrix(prefix + "wo_a", g * rank, rank));
    }
    w.wo_b = matrix(prefix + "wo_b");
    w.q_norm = vector(prefix + "q_norm.weight");
    w.kv_norm = vector(prefix + "kv_norm.weight");
    w.sink = vector(prefix + "attn_sink");
    if (kind != LayerKind::kSlidingOnly) w.compressor = compressor(prefix + "compressor");
    if (kind == LayerKind::kSparse) {
      w.indexer = IndexerWeights{.wq_b = matrix(prefix + "indexer.wq_b"),
                                 .weights_proj = matrix(prefix + "indexer.weights_proj"),
                                 .compressor = compressor(prefix + "indexer.compressor")};
    }
    return w;
  }

  MoeWeights moe(const std::string& prefix, bool hash) {
    const ModelConfig& config = checkpoint_.config();
    MoeWeights w;
    w.gate = matrix(prefix + "gate");
    if (hash) {
      for (const std::int64_t id :
           elements<std::int64_t>(checkpoint_.tensor(prefix + "gate.tid2eid"))) {
        w.tid2eid.push_back(static_cast<std::int32_t>(id));
      }
    } else {
      w.bias = vector(prefix + "gate.bias");
    }
    for (int e = 0; e < config.routed_experts; ++e) {
      w.experts.push_back(expert(fmt::format("{}experts.{}", prefix, e)));
    }
    w.shared.push_back(expert(prefix + "shared_experts"));
    return w;
  }

  std::size_t bytes() const { return bytes_; }

 private:
  PackedMatrix fp4(const std::string& prefix, const Tensor& weight, std::size_t row,
                   std::size_t rows, std::size_t k) const {
    const Tensor& scale = checkpoint_.tensor(prefix + ".scale");
    const std::size_t groups = k / PackedMatrix::kFp4Group;
    std::vector<std::uint8_t> scales;
    if (scale.dtype == Dtype::kF8E8M0) {
      const auto all = codes(scale);
      scales.assign(all.begin(), all.end());
    } else {
      for (const float s : elements<float>(scale)) {
        const auto code = e8m0_from_float(s);
        if (!code) {
          throw InputError(fmt::format("{}: tensor {}", scale.file, scale.name),
                           "FP4 scales that are powers of two", fmt::format("{}", s));
        }
        scales.push_back(*code);
      }
    }
    return PackedMatrix::fp4(rows, k, codes(weight).subspan(row * k / 2, rows * k / 2),
                             std::span(scales).subspan(row * groups, rows * groups));
  }

  PackedMatrix fp8(const std::string& prefix, const Tensor& weight, std::size_t row,
                   std::size_t rows, std::size_t k) const {
    const auto all = codes(weight);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if ((all[i] & 0x7f) == 0x7f) {
        throw InputError(fmt::format("{}: tensor {}, byte offset {}", weight.file, weight.name,
                                     weight.begin + i),
                         "finite e4m3 codes", "NaN");
      }
    }
    const Tensor& scale = checkpoint_.tensor(prefix + ".scale");
    std::vector<float> scales;
    if (scale.dtype == Dtype::kF8E8M0) {
      for (const std::uint8_t code : codes(scale)) scales.push_back(e8m0_to_float(code));
    } else {
      scales = elements<float>(scale);
    }
    constexpr std::size_t kBlock = PackedMatrix::kFp8Block;
    const std::size_t blocks = (k + kBlock - 1) / kBlock;
    if (row % kBlock != 0) {
      // A group of rows that starts inside a block: the panels' scales would straddle blocks.
      throw InputError(fmt::format("{}: tensor {}", weight.file, weight.name),
                       "row groups that are multiples of 128", fmt::format("{} rows", row));
    }
    const std::size_t first = row / kBlock * blocks;
    const std::size_t count = (rows + kBlock - 1) / kBlock * blocks;
    return PackedMatrix::fp8(rows, k, all.subspan(row * k, rows * k),
                             std::span(scales).subspan(first, count));
  }

  const Checkpoint& checkpoint_;
  std::size_t bytes_ = 0;
};

}  // namespace

NetworkWeights load_weights(const Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config();
  Loader loader(checkpoint);
  NetworkWeights w;
  w.embedding = elements<std::uint16_t>(checkpoint.tensor("embed.weight"));
  for (int l = 0; l < config.layers; ++l) {
    const std::string prefix = fmt::format("layers.{}.", l);
    w.layers.push_back({.hc_attn = loader.hyper(prefix + "hc_attn"),
                        .hc_ffn = loader.hyper(prefix + "hc_ffn"),
                        .attn_norm = loader.vector(prefix + "attn_norm.weight"),
                        .ffn_norm = loader.vector(prefix + "ffn_norm.weight"),
                        .attention = loader.attention(prefix + "attn.", config.kind(l)),
                        .moe = loader.moe(prefix + "ffn.", l < config.hash_layers)});
  }
  w.hc_head = loader.hyper("hc_head");
  w.norm = loader.vector("norm.weight");
  w.head = loader.matrix("head");
  w.bytes = loader.bytes() + w.embedding.size() * sizeof(std::uint16_t);
  return w;
}

}  // namespace cupel

#include "cupel/checkpoint/catalogue.h"

#include <utility>

#include <fmt/format.h>

namespace cupel {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr std::int64_t kBlock = 128;    // FP8: one scale for 128 x 128 elements
constexpr std::int64_t kFp4Group = 32;  // FP4: one scale for 32 elements of a row

std::int64_t blocks(std::int64_t size) {
  return (size + kBlock - 1) / kBlock;
}

// Tensors under one name prefix, whose roles may have a prefix too.
class Section {
 public:
  Section(std::string prefix, const ExpectedTensorVisitor& visit, std::string_view role_prefix = "")
      : prefix_(std::move(prefix)), role_prefix_(role_prefix), visit_(visit) {}

  void f32(std::string_view name, std::string_view role, Shape shape) const {
    add(name, role, std::move(shape), Encoding::kPlain, Dtype::kF32);
  }
  void bf16(std::string_view name, std::string_view role, Shape shape) const {
    add(name, role, std::move(shape), Encoding::kPlain, Dtype::kBF16);
  }
  void i64(std::string_view name, std::string_view role, Shape shape) const {
    add(name, role, std::move(shape), Encoding::kPlain, Dtype::kI64);
  }
  void quantized(std::string_view name, std::string_view role, Shape shape,
                 Encoding encoding = Encoding::kFp8) const {
    add(name, role, std::move(shape), encoding, Dtype::kF8E4M3);
  }

 private:
  void add(std::string_view name, std::string_view role, Shape shape, Encoding encoding,
           Dtype dtype) const {
    visit_({fmt::format("{}{}", prefix_, name), fmt::format("{}{}", role_prefix_, role),
            std::move(shape), encoding, dtype});
  }

  std::string prefix_;
  std::string_view role_prefix_;
  const ExpectedTensorVisitor& visit_;
};

void visit_hc_head(const ModelConfig& c, const Section& section) {
  section.f32("hc_head_fn", "hyper-connection head fn", {c.hc_mult, c.hc_mult * c.hidden_size});
  section.f32("hc_head_base", "hyper-connection head base", {c.hc_mult});
  section.f32("hc_head_scale", "hyper-connection head scale", {1});
}

// A compressor of entries of width `dim` (spec section 3.7): with ratio 4 neighbouring windows
// overlap, and the projections hold two parts.
void visit_compressor(const ModelConfig& c, int ratio, int dim, const Section& section) {
  const int width = ratio == 4 ? 2 * dim : dim;
  section.f32("compressor.ape", "compressor ape", {ratio, width});
  section.bf16("compressor.norm.weight", "compressor norm", {dim});
  section.bf16("compressor.wkv.weight", "compressor wkv", {width, c.hidden_size});
  section.bf16("compressor.wgate.weight", "compressor wgate", {width, c.hidden_size});
}

void visit_attention(const ModelConfig& c, int ratio, const std::string& prefix,
                     const ExpectedTensorVisitor& visit) {
  const Section attn(prefix + "attn.", visit);
  const int width = c.heads * c.head_dim;
  const std::int64_t o_width = std::int64_t{c.o_groups} * c.o_lora_rank;
  attn.quantized("wq_a.weight", "attention wq_a", {c.q_lora_rank, c.hidden_size});
  attn.quantized("wq_b.weight", "attention wq_b", {width, c.q_lora_rank});
  attn.quantized("wkv.weight", "attention wkv", {c.head_dim, c.hidden_size});
  attn.quantized("wo_a.weight", "attention wo_a", {o_width, width / c.o_groups},
                 Encoding::kFp8OrBf16);
  attn.quantized("wo_b.weight", "attention wo_b", {c.hidden_size, o_width});
  attn.bf16("q_norm.weight", "attention q norm", {c.q_lora_rank});
  attn.bf16("kv_norm.weight", "attention kv norm", {c.head_dim});
  attn.f32("attn_sink", "attention sink", {c.heads});
  if (ratio == 0) return;
  visit_compressor(c, ratio, c.head_dim, attn);
  if (ratio != 4) return;
  const Section indexer(prefix + "attn.indexer.", visit, "indexer ");
  indexer.quantized("wq_b.weight", "wq_b", {c.index_heads * c.index_head_dim, c.q_lora_rank});
  indexer.bf16("weights_proj.weight", "weights_proj", {c.index_heads, c.hidden_size});
  visit_compressor(c, ratio, c.index_head_dim, indexer);
}

void visit_experts(const ModelConfig& c, bool hash, const std::string& prefix,
                   const ExpectedTensorVisitor& visit) {
  const Section ffn(prefix + "ffn.", visit);
  ffn.bf16("gate.weight", "router weight", {c.routed_experts, c.hidden_size});
  if (hash) {
    ffn.i64("gate.tid2eid", "router table", {c.vocab_size, c.experts_per_token});
  } else {
    ffn.f32("gate.bias", "router bias", {c.routed_experts});
  }
  for (int expert = 0; expert < c.routed_experts; ++expert) {
    const Section section(fmt::format("{}ffn.experts.{}.", prefix, expert), visit);
    const Encoding encoding = Encoding::kExpert;
    section.quantized("w1.weight", "routed expert w1", {c.expert_width, c.hidden_size}, encoding);
    section.quantized("w2.weight", "routed expert w2", {c.hidden_size, c.expert_width}, encoding);
    section.quantized("w3.weight", "routed expert w3", {c.expert_width, c.hidden_size}, encoding);
  }
  const int shared = c.shared_experts * c.expert_width;
  ffn.quantized("shared_experts.w1.weight", "shared expert w1", {shared, c.hidden_size});
  ffn.quantized("shared_experts.w2.weight", "shared expert w2", {c.hidden_size, shared});
  ffn.quantized("shared_experts.w3.weight", "shared expert w3", {shared, c.hidden_size});
}

void visit_block(const ModelConfig& c, int ratio, bool hash, const std::string& prefix,
                 const ExpectedTensorVisitor& visit) {
  visit_attention(c, ratio, prefix, visit);
  visit_experts(c, hash, prefix, visit);
  const Section block(prefix, visit);
  block.bf16("attn_norm.weight", "attention norm", {c.hidden_size});
  block.bf16("ffn_norm.weight", "ffn norm", {c.hidden_size});
  // For each stream one pre and one post weight, and the matrix that mixes the streams.
  const int mixes = (2 + c.hc_mult) * c.hc_mult;
  for (const std::string_view part : {"attn", "ffn"}) {
    block.f32(fmt::format("hc_{}_fn", part), "hyper-connection fn",
              {mixes, c.hc_mult * c.hidden_size});
    block.f32(fmt::format("hc_{}_base", part), "hyper-connection base", {mixes});
    block.f32(fmt::format("hc_{}_scale", part), "hyper-connection scale", {3});
  }
}

void visit_mtp_extras(const ModelConfig& c, const Section& mtp) {
  mtp.quantized("e_proj.weight", "e_proj", {c.hidden_size, c.hidden_size});
  mtp.quantized("h_proj.weight", "h_proj", {c.hidden_size, c.hidden_size});
  mtp.bf16("enorm.weight", "enorm", {c.hidden_size});
  mtp.bf16("hnorm.weight", "hnorm", {c.hidden_size});
  mtp.bf16("norm.weight", "norm", {c.hidden_size});
  visit_hc_head(c, mtp);
}

void visit_dspark_extras(const ModelConfig& c, bool first, bool last, const Section& mtp) {
  if (first) {
    const auto targets = static_cast<std::int64_t>(c.dspark_target_layers.size());
    mtp.quantized("main_proj.weight", "main_proj", {c.hidden_size, targets * c.hidden_size});
    mtp.bf16("main_norm.weight", "main_norm", {c.hidden_size});
  }
  if (last) {
    mtp.bf16("norm.weight", "norm", {c.hidden_size});
    visit_hc_head(c, mtp);
    mtp.bf16("markov_head.markov_w1.weight", "markov_w1", {c.vocab_size, c.dspark_markov_rank});
    mtp.bf16("markov_head.markov_w2.weight", "markov_w2", {c.vocab_size, c.dspark_markov_rank});
    mtp.bf16("confidence_head.proj.weight", "confidence_head",
             {1, c.hidden_size + c.dspark_markov_rank});
  }
}

}  // namespace

std::uint64_t Storage::bytes() const {
  // The configuration bounds every size: nothing overflows.
  std::uint64_t bytes = dtype_size(dtype);
  for (const std::int64_t size : shape) bytes *= static_cast<std::uint64_t>(size);
  std::uint64_t scales = scale_shape.empty() ? 0 : 1;
  for (const std::int64_t size : scale_shape) scales *= static_cast<std::uint64_t>(size);
  return bytes + scales;
}

std::vector<Storage> legal_storages(const ExpectedTensor& tensor) {
  const Shape& shape = tensor.shape;
  if (tensor.encoding == Encoding::kPlain) return {{tensor.dtype, shape, {}}};
  const Storage fp8{Dtype::kF8E4M3, shape, {blocks(shape[0]), blocks(shape[1])}};
  const Storage bf16{Dtype::kBF16, shape, {}};
  if (tensor.encoding == Encoding::kFp8) return {fp8};
  if (tensor.encoding == Encoding::kFp8OrBf16) return {fp8, bf16};
  const Storage fp4{Dtype::kI8, {shape[0], shape[1] / 2}, {shape[0], shape[1] / kFp4Group}};
  return {fp4, fp8, bf16};
}

std::string scale_name(std::string_view weight_name) {
  constexpr std::string_view kWeight = "weight";
  return fmt::format("{}scale", weight_name.substr(0, weight_name.size() - kWeight.size()));
}

void visit_trunk_tensors(const ModelConfig& c, const ExpectedTensorVisitor& visit) {
  const Section trunk("", visit);
  trunk.bf16("embed.weight", "embedding", {c.vocab_size, c.hidden_size});
  trunk.bf16("head.weight", "output head", {c.vocab_size, c.hidden_size});
  trunk.bf16("norm.weight", "final norm", {c.hidden_size});
  visit_hc_head(c, trunk);
}

void visit_layer_tensors(const ModelConfig& c, int layer, const ExpectedTensorVisitor& visit) {
  visit_block(c, c.ratio(layer), layer < c.hash_layers, fmt::format("layers.{}.", layer), visit);
}

void visit_drafter_tensors(const ModelConfig& c, int stage, int stages,
                           const ExpectedTensorVisitor& visit) {
  if (c.drafter == DrafterKind::kNone) return;
  const std::string prefix = fmt::format("mtp.{}.", stage);
  visit_block(c, 0, false, prefix, visit);
  const Section mtp(prefix, visit);
  if (c.drafter == DrafterKind::kMtp) {
    visit_mtp_extras(c, mtp);
  } else {
    visit_dspark_extras(c, stage == 0, stage == stages - 1, mtp);
  }
}

}  // namespace cupel

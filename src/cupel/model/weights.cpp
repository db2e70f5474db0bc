#include "cupel/model/weights.h"

#include <algorithm>
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
std::vector<T> elements(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

Matrix::Format format_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kI8:
      return Matrix::Format::kFp4;
    case Dtype::kF8E4M3:
      return Matrix::Format::kFp8;
    case Dtype::kBF16:
      return Matrix::Format::kBf16;
    default:
      return Matrix::Format::kF32;
  }
}

// Sets up every matrix at once and fills them all in one parallel loop, a few panels at a time: no
// tensor is held twice.
class Loader {
 public:
  Loader(const WeightSource& source, Executor& executor, WeightsForm form)
      : source_(source),
        executor_(executor),
        in_place_(form == WeightsForm::kMap && source.map()) {}

  DeviceArray<float> vector(const std::string& name) const {
    const Tensor& tensor = source_.tensor(name);
    const LentBytes lent = all(tensor);
    if (tensor.dtype == Dtype::kF32) return {executor_, elements<float>(lent.bytes())};
    std::vector<float> values;
    for (const std::uint16_t bits : elements<std::uint16_t>(lent.bytes())) {
      values.push_back(bf16_to_float(bits));
    }
    return {executor_, values};
  }

  // A linear weight in whatever form it is stored, its rows [row, row + rows) only (0 = all).
  void matrix(const std::string& prefix, Weight& out, std::size_t row = 0, std::size_t rows = 0) {
    matrix_of(source_.tensor(prefix + ".weight"), prefix, out, row, rows);
  }

  void hyper(const std::string& prefix, HyperWeights& out) {
    matrix_of(source_.tensor(prefix + "_fn"), prefix, out.fn, 0, 0);
    out.base = vector(prefix + "_base");
    out.scale = vector(prefix + "_scale");
  }

  void compressor(const std::string& prefix, CompressorWeights& out) {
    matrix(prefix + ".wkv", out.wkv);
    matrix(prefix + ".wgate", out.wgate);
    out.ape = vector(prefix + ".ape");
    out.norm = vector(prefix + ".norm.weight");
  }

  void expert(const std::string& prefix, ExpertWeights& out) {
    matrix(prefix + ".w1", out.w1);
    matrix(prefix + ".w3", out.w3);
    matrix(prefix + ".w2", out.w2);
  }

  void attention(const std::string& prefix, LayerKind kind, AttentionWeights& out) {
    const ModelConfig& config = source_.config();
    matrix(prefix + "wq_a", out.wq_a);
    matrix(prefix + "wq_b", out.wq_b);
    matrix(prefix + "wkv", out.wkv);
    out.wo_a.resize(size(config.o_groups));
    for (std::size_t g = 0; g < out.wo_a.size(); ++g) {
      const std::size_t rank = size(config.o_lora_rank);
      matrix(prefix + "wo_a", out.wo_a[g], g * rank, rank);
    }
    matrix(prefix + "wo_b", out.wo_b);
    out.q_norm = vector(prefix + "q_norm.weight");
    out.kv_norm = vector(prefix + "kv_norm.weight");
    out.sink = vector(prefix + "attn_sink");
    if (kind != LayerKind::kSlidingOnly) {
      compressor(prefix + "compressor", out.compressor.emplace());
    }
    if (kind == LayerKind::kSparse) {
      IndexerWeights& indexer = out.indexer.emplace();
      matrix(prefix + "indexer.wq_b", indexer.wq_b);
      matrix(prefix + "indexer.weights_proj", indexer.weights_proj);
      compressor(prefix + "indexer.compressor", indexer.compressor);
    }
  }

  void moe(const std::string& prefix, bool hash, MoeWeights& out) {
    const ModelConfig& config = source_.config();
    matrix(prefix + "gate", out.gate);
    if (hash) {
      const LentBytes lent = all(source_.tensor(prefix + "gate.tid2eid"));
      const auto stored = elements<std::int64_t>(lent.bytes());
      const std::vector<std::int32_t> ids(stored.begin(), stored.end());
      out.tid2eid = {executor_, ids};
    } else {
      out.bias = vector(prefix + "gate.bias");
    }
    out.experts.resize(size(config.routed_experts));
    for (std::size_t e = 0; e < out.experts.size(); ++e) {
      expert(fmt::format("{}experts.{}", prefix, e), out.experts[e]);
    }
    expert(prefix + "shared_experts", out.shared.emplace_back());
  }

  DeviceArray<std::uint16_t> embedding() {
    const Tensor& tensor = source_.tensor("embed.weight");
    DeviceArray<std::uint16_t> values(executor_, tensor.bytes() / sizeof(std::uint16_t));
    bytes_ += tensor.bytes();
    for (std::size_t begin = 0; begin < tensor.bytes(); begin += kJobBytes) {
      const LentBytes lent =
          source_.read(tensor, begin, std::min(kJobBytes, tensor.bytes() - begin));
      executor_.to_device(values.data() + begin / sizeof(std::uint16_t), lent.bytes().data(),
                          lent.bytes().size());
    }
    return values;
  }

  // Runs what the functions above have set up.
  void fill() {
    ThreadPool& pool = executor_.host_threads();
    const auto shares = static_cast<std::size_t>(pool.threads());
    std::vector<Job> jobs;
    // As linear() deals out panels: the thread that will read them touches them first.
    for (std::size_t share = 0; share < shares; ++share) {
      for (const Job& matrix : matrices_) {
        const std::size_t panels = matrix.matrix->panels();
        const std::size_t step =
            std::max<std::size_t>(1, kJobBytes / (matrix.matrix->row_bytes() * Matrix::kPanel));
        const std::size_t end = panels * (share + 1) / shares;
        for (std::size_t panel = panels * share / shares; panel < end; panel += step) {
          Job job = matrix;
          job.panel_begin = panel;
          job.panel_end = std::min(end, panel + step);
          jobs.push_back(job);
        }
      }
    }
    pool.parallel_for(jobs.size(), [&](std::size_t i, int) { run(jobs[i]); });
    for (const Job& job : matrices_) bytes_ += job.matrix->bytes();
  }

  std::size_t bytes() const { return bytes_; }

 private:
  // Of a matrix's codes packed by one unit of work.
  static constexpr std::size_t kJobBytes = std::size_t{1} << 20;

  struct Job {
    Matrix* matrix;
    const Tensor* weight;
    const Tensor* fp4_scale;  // E8M0; nullptr: none
    std::size_t first_row;    // of the tensor
    std::size_t panel_begin = 0, panel_end = 0;
  };

  LentBytes all(const Tensor& tensor) const { return source_.read(tensor, 0, tensor.bytes()); }

  void matrix_of(const Tensor& weight, const std::string& prefix, Weight& out, std::size_t row,
                 std::size_t rows) {
    using Format = Matrix::Format;
    const Format format = format_of(weight.dtype);
    if (rows == 0) rows = static_cast<std::size_t>(weight.shape[0]);
    const auto stored_k = static_cast<std::size_t>(weight.shape[1]);
    const std::size_t k = format == Format::kFp4 ? 2 * stored_k : stored_k;
    const std::size_t row_bytes = Matrix::row_bytes(format, k);
    const Tensor* scale = format == Format::kFp4 || format == Format::kFp8
                              ? &source_.tensor(prefix + ".scale")
                              : nullptr;
    const bool e8m0 = scale != nullptr && scale->dtype == Dtype::kF8E8M0;
    const std::size_t groups = k / Matrix::kFp4Group;
    if (in_place_ && (format != Format::kFp4 || e8m0)) {
      out = executor_.map_matrix(
          format, rows, k, weight.data.data() + row * row_bytes,
          format == Format::kFp4 ? scale->data.data() + row * groups : nullptr);
    }
    if (!out) {
      out = executor_.make_matrix(format, rows, k);
      matrices_.push_back(
          {out.get(), &weight, e8m0 && format == Format::kFp4 ? scale : nullptr, row});
      if (format == Format::kFp4 && !e8m0) {
        const auto codes = e8m0_codes(*scale);
        out->pack_fp4_scales(0, out->panels(), codes.data() + row * groups);
      }
    }
    if (format == Format::kFp8) out->set_fp8_scales(fp8_scales(weight, *scale, row, rows, k));
  }

  void run(const Job& job) {
    Matrix& m = *job.matrix;
    const std::size_t first = job.panel_begin * Matrix::kPanel;
    const std::size_t rows = std::min(m.n(), job.panel_end * Matrix::kPanel) - first;
    const auto lend = [&](const Tensor& tensor, std::size_t row_bytes) {
      return source_.read(tensor, (job.first_row + first) * row_bytes, rows * row_bytes);
    };
    {
      const LentBytes codes = lend(*job.weight, m.row_bytes());
      if (m.format() == Matrix::Format::kFp8) {
        check_finite(*job.weight, codes.bytes(), (job.first_row + first) * m.row_bytes());
      }
      m.pack_codes(job.panel_begin, job.panel_end, codes.bytes().data());
    }
    if (job.fp4_scale != nullptr) {
      const LentBytes scales = lend(*job.fp4_scale, m.k() / Matrix::kFp4Group);
      m.pack_fp4_scales(job.panel_begin, job.panel_end, scales.bytes().data());
    }
  }

  static void check_finite(const Tensor& weight, std::span<const std::byte> codes,
                           std::size_t offset) {
    const auto is_nan = [](std::byte b) { return (b & std::byte{0x7f}) == std::byte{0x7f}; };
    // All of them first, without a branch; then where.
    bool any = false;
    for (const std::byte code : codes) any |= is_nan(code);
    if (!any) return;
    const auto found = std::ranges::find_if(codes, is_nan) - codes.begin();
    throw InputError(fmt::format("{}: tensor {}, byte offset {}", weight.file, weight.name,
                                 weight.begin + offset + static_cast<std::size_t>(found)),
                     "finite e4m3 codes", "NaN");
  }

  std::vector<std::byte> e8m0_codes(const Tensor& scale) const {
    std::vector<std::byte> codes;
    const LentBytes lent = all(scale);
    for (const float s : elements<float>(lent.bytes())) {
      const auto code = e8m0_from_float(s);
      if (!code) {
        throw InputError(fmt::format("{}: tensor {}", scale.file, scale.name),
                         "FP4 scales that are powers of two", fmt::format("{}", s));
      }
      codes.push_back(std::byte{*code});
    }
    return codes;
  }

  std::vector<float> fp8_scales(const Tensor& weight, const Tensor& scale, std::size_t row,
                                std::size_t rows, std::size_t k) const {
    constexpr std::size_t kBlock = Matrix::kFp8Block;
    const std::size_t blocks = (k + kBlock - 1) / kBlock;
    if (row % kBlock != 0) {
      // A group of rows that starts inside a block: the panels' scales would straddle blocks.
      throw InputError(fmt::format("{}: tensor {}", weight.file, weight.name),
                       "row groups that are multiples of 128", fmt::format("{} rows", row));
    }
    const LentBytes lent = all(scale);
    std::vector<float> scales;
    if (scale.dtype == Dtype::kF8E8M0) {
      for (const std::byte b : lent.bytes()) {
        scales.push_back(e8m0_to_float(std::to_integer<std::uint8_t>(b)));
      }
    } else {
      scales = elements<float>(lent.bytes());
    }
    const auto first = static_cast<std::ptrdiff_t>(row / kBlock * blocks);
    const auto count = static_cast<std::ptrdiff_t>((rows + kBlock - 1) / kBlock * blocks);
    return {scales.begin() + first, scales.begin() + first + count};
  }

  const WeightSource& source_;
  Executor& executor_;
  bool in_place_;
  std::vector<Job> matrices_;  // to be packed, all panels
  std::size_t bytes_ = 0;
};

}  // namespace

WeightsForm parse_weights_form(std::string_view name) {
  if (name == "repack") return WeightsForm::kRepack;
  if (name == "map") return WeightsForm::kMap;
  throw InputError("--weights", "repack or map", name);
}

NetworkWeights load_weights(const WeightSource& source, Executor& executor, WeightsForm form) {
  const ModelConfig& config = source.config();
  Loader loader(source, executor, form);
  NetworkWeights w;
  w.embedding = loader.embedding();
  w.layers.resize(size(config.layers));
  for (std::size_t l = 0; l < w.layers.size(); ++l) {
    const int layer = static_cast<int>(l);
    const std::string prefix = fmt::format("layers.{}.", l);
    LayerWeights& out = w.layers[l];
    loader.hyper(prefix + "hc_attn", out.hc_attn);
    loader.hyper(prefix + "hc_ffn", out.hc_ffn);
    out.attn_norm = loader.vector(prefix + "attn_norm.weight");
    out.ffn_norm = loader.vector(prefix + "ffn_norm.weight");
    loader.attention(prefix + "attn.", config.kind(layer), out.attention);
    loader.moe(prefix + "ffn.", layer < config.hash_layers, out.moe);
  }
  loader.hyper("hc_head", w.hc_head);
  w.norm = loader.vector("norm.weight");
  loader.matrix("head", w.head);
  loader.fill();
  w.bytes = loader.bytes();
  if (form == WeightsForm::kMap) w.map = source.map();
  return w;
}

}  // namespace cupel

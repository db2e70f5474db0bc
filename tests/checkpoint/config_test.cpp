#include "cupel/checkpoint/config.h"

#include <filesystem>

#include "support/expect_error.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cupel/base/file.h"

namespace cupel {
namespace {

using nlohmann::json;
using test::expect_input_error;

const std::filesystem::path kSource = CUPEL_SOURCE_DIR;

json tiny_config() {
  return json::parse(read_file(kSource / "models/tiny-v4-0731/config.json"));
}

TEST(Config, PublishedPreview) {
  const ModelConfig config = load_config(kSource / "data/v4-flash/config.preview.json");
  EXPECT_EQ(config.vocab_size, 129280);
  EXPECT_EQ(config.hidden_size, 4096);
  EXPECT_EQ(config.layers, 43);
  EXPECT_EQ(config.hash_layers, 3);
  EXPECT_EQ(config.heads, 64);
  EXPECT_EQ(config.head_dim, 512);
  EXPECT_EQ(config.rope_dim, 64);
  EXPECT_EQ(config.q_lora_rank, 1024);
  EXPECT_EQ(config.o_groups, 8);
  EXPECT_EQ(config.o_lora_rank, 1024);
  EXPECT_EQ(config.routed_experts, 256);
  EXPECT_EQ(config.shared_experts, 1);
  EXPECT_EQ(config.experts_per_token, 6);
  EXPECT_EQ(config.expert_width, 2048);
  EXPECT_EQ(config.index_heads, 64);
  EXPECT_EQ(config.index_head_dim, 128);
  EXPECT_EQ(config.index_topk, 512);
  EXPECT_EQ(config.window, 128);
  EXPECT_EQ(config.hc_mult, 4);
  EXPECT_EQ(config.hc_sinkhorn_iters, 20);
  EXPECT_EQ(config.hc_eps, 1e-6F);
  EXPECT_EQ(config.rms_norm_eps, 1e-6F);
  EXPECT_EQ(config.swiglu_limit, 10.0F);
  EXPECT_EQ(config.routed_scaling_factor, 1.5F);
  EXPECT_EQ(config.max_position_embeddings, 1048576);
  EXPECT_EQ(config.rope_theta, 10000);
  EXPECT_EQ(config.compress_rope_theta, 160000);
  EXPECT_EQ(config.yarn_factor, 16);
  EXPECT_EQ(config.yarn_beta_fast, 32);
  EXPECT_EQ(config.yarn_beta_slow, 1);
  EXPECT_EQ(config.yarn_original_positions, 65536);
  EXPECT_EQ(config.bos_token_id, 0);
  EXPECT_EQ(config.eos_token_id, 1);
  EXPECT_EQ(config.expert_dtype, ExpertDtype::kFp4);
  EXPECT_TRUE(config.expert_dtype_stated);
  EXPECT_EQ(config.compress_ratios.size(), 44U);
  EXPECT_EQ(config.kind(1), LayerKind::kSlidingOnly);
  EXPECT_EQ(config.kind(2), LayerKind::kSparse);
  EXPECT_EQ(config.kind(3), LayerKind::kDenseEntries);
  EXPECT_EQ(config.kind(42), LayerKind::kSparse);
  EXPECT_EQ(config.drafter, DrafterKind::kMtp);
  EXPECT_EQ(config.nextn_predict_layers, 1);
}

TEST(Config, Published0731) {
  const ModelConfig config = load_config(kSource / "data/v4-flash/config.0731.json");
  EXPECT_EQ(config.layers, 43);
  EXPECT_EQ(config.compress_ratios.size(), 46U);
  EXPECT_EQ(config.nextn_predict_layers, 1);
  EXPECT_EQ(config.drafter, DrafterKind::kDspark);
  EXPECT_EQ(config.dspark_block_size, 5);
  EXPECT_EQ(config.dspark_noise_token_id, 128799);
  EXPECT_EQ(config.dspark_markov_rank, 256);
  EXPECT_EQ(config.dspark_target_layers, (std::vector<int>{40, 41, 42}));
}

TEST(Config, WithoutDrafterOrExpertDtype) {
  json config = json::parse(read_file(kSource / "models/tiny-v4-preview/config.json"));
  config.erase("num_nextn_predict_layers");
  config["expert_dtype"] = nullptr;
  const ModelConfig parsed = parse_config(config.dump(), "config.json");
  EXPECT_EQ(parsed.drafter, DrafterKind::kNone);
  EXPECT_FALSE(parsed.expert_dtype_stated);
}

// One fault a case: the field (a JSON pointer), its value or nothing to remove it, and what the
// message must hold besides the file and the field.
struct Fault {
  std::string pointer;
  std::string value;  // JSON; empty removes the field
  std::vector<std::string> parts;
};

void PrintTo(const Fault& fault, std::ostream* out) {
  *out << fault.pointer << '=' << fault.value;
}

class ConfigFault : public testing::TestWithParam<Fault> {};

TEST_P(ConfigFault, NamesTheField) {
  const Fault& fault = GetParam();
  json config = tiny_config();
  const json::json_pointer pointer(fault.pointer);
  if (fault.value.empty()) {
    config[pointer.parent_pointer()].erase(pointer.back());
  } else {
    config[pointer] = json::parse(fault.value);
  }
  std::string field = fault.pointer.substr(1);
  for (char& c : field) c = c == '/' ? '.' : c;
  if (std::isdigit(static_cast<unsigned char>(field.back())) != 0) {
    field = field.substr(0, field.rfind('.')) + "[" + field.substr(field.rfind('.') + 1) + "]";
  }
  std::vector<std::string> parts = fault.parts;
  parts.push_back("folder/config.json: field " + field + ": expected ");
  expect_input_error([&] { parse_config(config.dump(), "folder/config.json"); }, parts);
}

std::vector<Fault> faults() {
  std::vector<Fault> all = {
      {"/model_type", R"("deepseek_v41")", {"deepseek_v4)", R"(found "deepseek_v41")"}},
      {"/model_type", "4", {"a string", "found 4"}},
      {"/hidden_size", R"("256")", {"an integer", R"(found "256")"}},
      {"/hidden_size", "256.0", {"an integer", "found 256.0"}},
      {"/hidden_size", "200", {"a multiple of 128", "found 200"}},
      {"/vocab_size", "-1", {"an integer from 1", "found -1"}},
      {"/vocab_size", "18446744073709551615", {"found 18446744073709551615"}},
      {"/vocab_size", "4294967297", {"found 4294967297"}},
      {"/vocab_size", "0", {"found 0"}},
      {"/num_hidden_layers", "1000000000", {"found 1000000000"}},
      {"/num_hash_layers", "6", {"from 0 to 5", "found 6"}},
      {"/num_attention_heads", "[4]", {"an integer", "found [4]"}},
      {"/o_groups", "3", {"a divisor of num_attention_heads = 4", "found 3"}},
      {"/head_dim", "256", {"512 (what the cache layouts store)", "found 256"}},
      {"/qk_rope_head_dim", "32", {"64 (", "found 32"}},
      {"/index_head_dim", "64", {"128 (", "found 64"}},
      {"/sliding_window", "4096", {"128 (", "found 4096"}},
      {"/num_key_value_heads", "2", {"1 (", "found 2"}},
      {"/hc_mult", "2", {"4 (", "found 2"}},
      {"/q_lora_rank", "100", {"a multiple of 128", "found 100"}},
      {"/o_lora_rank", "64", {"a multiple of 128", "found 64"}},
      {"/moe_intermediate_size", "96", {"a multiple of 128", "found 96"}},
      {"/n_routed_experts", "0", {"found 0"}},
      {"/num_experts_per_tok", "17", {"from 1 to 16", "found 17"}},
      {"/bos_token_id", "768", {"from 0 to 767", "found 768"}},
      {"/eos_token_id", "[1]", {"an integer", "found [1]"}},
      {"/max_position_embeddings", "9223372036854775807", {"found 9223372036854775807"}},
      {"/hc_eps", "0", {"greater than 0", "found 0"}},
      {"/rms_norm_eps", "-1e-6", {"greater than 0", "found -1e-06"}},
      {"/swiglu_limit", "true", {"a number", "found true"}},
      {"/routed_scaling_factor", "1e300", {"float32", "found 1e+300"}},
      {"/rope_theta", R"("10000")", {"a number", R"(found "10000")"}},
      {"/rope_scaling", "[]", {"an object", "found []"}},
      {"/rope_scaling/type", R"("linear")", {R"("yarn")", R"(found "linear")"}},
      {"/rope_scaling/type", "", {R"("yarn")", "no such field"}},
      {"/rope_scaling/factor", "0.5", {"at least 1", "found 0.5"}},
      {"/rope_scaling/beta_fast", "1", {"more than beta_slow = 1", "found 1"}},
      {"/compress_ratios", "{}", {"an array", "found {}"}},
      {"/compress_ratios", "[0,0,4,128]", {"at least 5 entries", "found 4 entries"}},
      {"/compress_ratios/3", "64", {"0, 4 or 128", "found 64"}},
      {"/compress_ratios/3", "-4", {"found -4"}},
      {"/hidden_act", R"("gelu")", {R"("silu")", R"(found "gelu")"}},
      {"/scoring_func", R"("sigmoid")", {R"("sqrtsoftplus")", R"(found "sigmoid")"}},
      {"/topk_method", R"("greedy")", {R"("noaux_tc")", R"(found "greedy")"}},
      {"/norm_topk_prob", "false", {"true", "found false"}},
      {"/attention_bias", "true", {"false", "found true"}},
      {"/tie_word_embeddings", "true", {"false", "found true"}},
      {"/quantization_config", "", {"an object", "no such field"}},
      {"/quantization_config/quant_method", R"("awq")", {R"("fp8")", R"(found "awq")"}},
      {"/quantization_config/fmt", R"("e5m2")", {R"("e4m3")", R"(found "e5m2")"}},
      {"/quantization_config/activation_scheme", R"("static")", {"dynamic", R"(found "static")"}},
      {"/quantization_config/scale_fmt", R"("float")", {"ue8m0", R"(found "float")"}},
      {"/quantization_config/weight_block_size", "[128,64]", {"[128,128]", "found [128,64]"}},
      {"/expert_dtype", R"("int4")", {R"("fp4", "fp8" or "bf16")", R"(found "int4")"}},
      {"/num_nextn_predict_layers", "-1", {"from 0", "found -1"}},
      {"/dspark_block_size", "0", {"from 1", "found 0"}},
      {"/dspark_markov_rank", "", {"an integer", "no such field"}},
      {"/dspark_noise_token_id", "768", {"from 0 to 767", "found 768"}},
      {"/dspark_target_layer_ids", "[]", {"at least one layer", "found []"}},
      {"/dspark_target_layer_ids", "[3,2]", {"ascending", "found [3,2]"}},
      {"/dspark_target_layer_ids", "[2,2]", {"ascending", "found [2,2]"}},
      {"/dspark_target_layer_ids/2", "5", {"from 0 to 4", "found 5"}},
  };
  for (const std::string field : {"model_type",
                                  "vocab_size",
                                  "hidden_size",
                                  "q_lora_rank",
                                  "o_lora_rank",
                                  "moe_intermediate_size",
                                  "num_hidden_layers",
                                  "num_hash_layers",
                                  "num_attention_heads",
                                  "o_groups",
                                  "head_dim",
                                  "qk_rope_head_dim",
                                  "index_head_dim",
                                  "sliding_window",
                                  "num_key_value_heads",
                                  "hc_mult",
                                  "index_n_heads",
                                  "index_topk",
                                  "n_routed_experts",
                                  "n_shared_experts",
                                  "num_experts_per_tok",
                                  "hc_sinkhorn_iters",
                                  "bos_token_id",
                                  "max_position_embeddings",
                                  "eos_token_id",
                                  "hc_eps",
                                  "rms_norm_eps",
                                  "swiglu_limit",
                                  "rope_theta",
                                  "routed_scaling_factor",
                                  "compress_rope_theta",
                                  "rope_scaling",
                                  "compress_ratios",
                                  "hidden_act",
                                  "scoring_func",
                                  "topk_method"}) {
    all.push_back({"/" + field, "", {"found no such field"}});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, ConfigFault, testing::ValuesIn(faults()));

TEST(Config, MoreLayersThanRatiosNamesTheRatios) {
  json config = tiny_config();
  config["num_hidden_layers"] = 9;
  expect_input_error([&] { parse_config(config.dump(), "config.json"); },
                     {"field compress_ratios", "at least 9 entries", "found 8 entries"});
}

TEST(Config, BrokenText) {
  const std::string good = tiny_config().dump();
  expect_input_error([&] { parse_config(good.substr(0, 100), "c.json"); },
                     {"c.json", "valid JSON"});
  expect_input_error([] { parse_config("", "c.json"); }, {"c.json", "valid JSON"});
  expect_input_error([] { parse_config("[1]", "c.json"); }, {"c.json", "a JSON object", "array"});
  expect_input_error([] { parse_config(R"({"rope_theta": 1e999})", "c.json"); },
                     {"c.json", "valid JSON", "1e999"});
  expect_input_error([] { parse_config("{\"a\": \"\xff\"}", "c.json"); }, {"c.json", "valid JSON"});
  expect_input_error([&] { parse_config(R"({"head_dim":512,)" + good.substr(1), "c.json"); },
                     {"c.json", R"("head_dim")", "one such field", "two"});
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  expect_input_error([&] { parse_config(R"({"model_type":)" + deep + "}", "c.json"); },
                     {"c.json", "nested at most 64 deep"});
  expect_input_error([] { load_config("/nonexistent/config.json"); }, {"/nonexistent/config.json"});
}

}  // namespace
}  // namespace cupel

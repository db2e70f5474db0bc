#include "cupel/server/context.h"

#include <nlohmann/json.hpp>

#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/server/fields.h"
#include "cupel/server/http_error.h"
#include "cupel/server/sampling_fields.h"

namespace cupel {
namespace {

using nlohmann::json;

// An empty object where there is no such file.
json read_object(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return json::object();
  json parsed = json::parse(read_file(file), nullptr, false);
  if (!parsed.is_object()) throw InputError(file.string(), "a JSON object", "something else");
  return parsed;
}

}  // namespace

SamplingParams load_sampling_defaults(const std::filesystem::path& model) {
  const std::filesystem::path file = model / "generation_config.json";
  const json config = read_object(file);
  try {
    Fields fields(config);
    SamplingParams params{.temperature = 1};
    read_sampling_numbers(fields, params);
    return params;
  } catch (const HttpError& error) {
    throw InputError(file.string(), "sampling parameters", error.what());
  }
}

bool load_add_bos(const std::filesystem::path& model) {
  const std::filesystem::path file = model / "tokenizer_config.json";
  const json config = read_object(file);
  const auto found = config.find("add_bos_token");
  if (found == config.end() || found->is_null()) return false;
  if (!found->is_boolean()) {
    throw InputError(file.string() + ", add_bos_token", "true or false", found->dump());
  }
  return found->get<bool>();
}

std::int64_t cache_capacity(Engine& engine) {
  const std::size_t bytes = engine.stats().max_cache_bytes;
  std::int64_t fits = 0, beyond = engine.config().max_position_embeddings + 1;
  while (beyond - fits > 1) {
    const std::int64_t middle = fits + (beyond - fits) / 2;
    (engine.network().sequence_bytes(middle) <= bytes ? fits : beyond) = middle;
  }
  return fits;
}

}  // namespace cupel

#include "cupel/eval/server_identity.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"

namespace cupel {
namespace {

using nlohmann::json;

constexpr const char* kBackendSetting = "attention_backend";
// Not the random seed, which SGLang draws anew at every launch, nor host, port and paths.
constexpr const char* kSettings[] = {"revision",
                                     kBackendSetting,
                                     "kv_cache_dtype",
                                     "quantization",
                                     "dtype",
                                     "tp_size",
                                     "dp_size",
                                     "ep_size",
                                     "page_size",
                                     "chunked_prefill_size",
                                     "max_running_requests",
                                     "disable_radix_cache",
                                     "speculative_algorithm",
                                     "enable_two_batch_overlap",
                                     "enable_deterministic_inference"};

bool not_offered(int status) {
  return status == 404 || status == 405 || status == 501;
}

class Inquiry {
 public:
  Inquiry(HttpConnection& connection, const HttpSettings& settings)
      : connection_(connection), settings_(settings) {}

  // nullopt where the server has no such path.
  std::optional<json> required(const std::string& path) const {
    const HttpReply reply = connection_.get(path);
    if (not_offered(reply.status)) return std::nullopt;
    if (reply.status != 200) throw_status(reply, path, settings_);
    json parsed = json::parse(reply.body, nullptr, false);
    if (!parsed.is_object()) {
      throw InputError(settings_.endpoint.text(path), "a JSON object",
                       describe_reply(reply, settings_.api_key));
    }
    return parsed;
  }

  // The same, and nullopt for whatever else is no JSON object: a path that only some servers have.
  std::optional<json> optional(const std::string& path) const {
    const HttpReply reply = connection_.get(path);
    if (reply.status != 200) return std::nullopt;
    json parsed = json::parse(reply.body, nullptr, false);
    if (!parsed.is_object()) return std::nullopt;
    return parsed;
  }

  std::string shown(const json& value) const {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    return first_bytes(without_key(text, settings_.api_key));
  }

 private:
  HttpConnection& connection_;
  const HttpSettings& settings_;
};

std::string text_or_empty(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<std::string> served_names(const Inquiry& inquiry) {
  std::vector<std::string> names;
  const auto models = inquiry.required("/v1/models");
  if (!models) return names;
  const auto data = models->find("data");
  if (data == models->end() || !data->is_array()) return names;
  for (const json& model : *data) {
    std::string name = text_or_empty(model, "id");
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

// SGLang's own name for the one model it serves: the folder or repository it was loaded from.
std::string model_path(const Inquiry& inquiry) {
  for (const char* path : {"/model_info", "/get_model_info"}) {
    const auto info = inquiry.optional(path);
    std::string name = info ? text_or_empty(*info, "model_path") : std::string();
    if (!name.empty()) return name;
  }
  return {};
}

std::string choose_model(const Inquiry& inquiry, const EndpointUrl& endpoint, Api api,
                         const std::string& wanted) {
  std::vector<std::string> names = served_names(inquiry);
  const std::string path = api == Api::kGenerate ? model_path(inquiry) : std::string();
  if (names.empty() && !path.empty()) names.push_back(path);
  if (!wanted.empty()) {
    const bool known =
        wanted == path || std::find(names.begin(), names.end(), wanted) != names.end();
    if (known || names.empty()) return wanted;
  }
  if (names.empty()) {
    throw InputError(endpoint.text("/v1/models"),
                     "the name of a model (or --served-model, if the URL is right)",
                     "none: no such interface, or an empty list");
  }
  if (wanted.empty() && names.size() == 1) return names.front();
  std::string list;
  for (const std::string& name : names) {
    list += (list.empty() ? "" : ", ") + inquiry.shown(name);
  }
  throw InputError("--served-model", fmt::format("one of {} at {}", list, endpoint.text("")),
                   wanted.empty() ? "none given" : wanted);
}

}  // namespace

void throw_status(const HttpReply& reply, const std::string& path, const HttpSettings& settings) {
  const std::string url = settings.endpoint.text(path);
  const std::string what = describe_reply(reply, settings.api_key);
  if (reply.status == 429 || reply.status >= 500) {
    const bool unreachable = reply.status == 429 || (reply.status >= 502 && reply.status <= 504);
    throw TransientError(fmt::format("{}: {}", url, what), unreachable, reply.retry_after_seconds);
  }
  throw InputError(url, "status 200", what);
}

ServerIdentity ask_identity(HttpConnection& connection, const HttpSettings& settings, Api api,
                            const std::string& wanted) {
  const Inquiry inquiry(connection, settings);
  ServerIdentity identity;
  identity.model = choose_model(inquiry, settings.endpoint, api, wanted);

  const auto add = [&](const char* key, const json& value) {
    if (value.is_null() || value.is_structured()) return;
    if (!identity.details.empty()) identity.details += ' ';
    identity.details += fmt::format("{}={}", key, inquiry.shown(value));
  };
  std::optional<json> info = inquiry.optional("/server_info");
  if (!info) info = inquiry.optional("/get_server_info");
  std::optional<json> version =
      info && info->contains("version") ? info : inquiry.optional("/version");
  if (version && version->contains("version")) add("version", version->at("version"));
  if (info) {
    for (const char* key : kSettings) {
      if (info->contains(key)) add(key, info->at(key));
    }
    const auto backend = info->find(kBackendSetting);
    if (backend != info->end() && backend->is_string()) identity.backend = inquiry.shown(*backend);
  }
  return identity;
}

}  // namespace cupel

// What a server says about itself, under the names that SGLang uses.
#pragma once

#include <nlohmann/json.hpp>

#include "cupel/server/context.h"

namespace cupel {

nlohmann::json models_json(const ServerContext& context);                          // /v1/models
nlohmann::json model_card(const ServerContext& context, const std::string& name);  // one of them
nlohmann::json model_info_json(const ServerContext& context);  // /get_model_info
// /server_info: settings that change answers, and the fingerprints of build, model and kernels.
// Holds no key.
nlohmann::json server_info_json(const ServerContext& context);

}  // namespace cupel

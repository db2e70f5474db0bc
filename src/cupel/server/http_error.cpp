#include "cupel/server/http_error.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "cupel/engine/request.h"

namespace cupel {
namespace {

const char* error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
    case 405:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return "service_unavailable_error";
    default:
      return status < 500 ? "invalid_request_error" : "internal_server_error";
  }
}

}  // namespace

HttpError wrong_parameter(std::string_view parameter, std::string_view expected,
                          std::string_view found) {
  return {400, fmt::format("{}: expected {}, found {}", parameter, expected, found),
          std::string(parameter)};
}

std::string error_body(const HttpError& error) {
  using nlohmann::json;
  const json body = {
      {"error",
       {{"message", error.what()},
        {"type", error_type(error.status())},
        {"param", error.parameter().empty() ? json(nullptr) : json(error.parameter())},
        {"code", error.status()}}}};
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

HttpError as_http_error(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const HttpError& error) {
    return error;
  } catch (const InputError& error) {
    return {400, error.what()};
  } catch (const QueueFull& error) {
    return {503, error.what()};
  } catch (const InfrastructureError& error) {
    return {503, error.what()};
  } catch (const std::bad_alloc&) {
    return {503, "out of memory"};
  } catch (const std::exception& error) {
    spdlog::error("server: {}", error.what());
  } catch (...) {
    spdlog::error("server: an exception of unknown type");
  }
  return {500, "internal error"};
}

}  // namespace cupel

// An error as a client gets it.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "cupel/base/error.h"

namespace cupel {

// Ends the handling of a request. `parameter` names what is wrong, or is empty.
class HttpError : public Error {
 public:
  HttpError(int status, const std::string& message, std::string parameter = {})
      : Error(ExitCode::kUsage, message), status_(status), parameter_(std::move(parameter)) {}

  int status() const { return status_; }
  const std::string& parameter() const { return parameter_; }

 private:
  int status_;
  std::string parameter_;
};

// 400: a parameter that is not as expected.
HttpError wrong_parameter(std::string_view parameter, std::string_view expected,
                          std::string_view found);

// The body of an error in the form of OpenAI's interface; `code` is the status, as vLLM has it.
std::string error_body(const HttpError& error);

// What became of a request that threw. InputError is the client's (400), a full queue is 503, an
// engine that stops 503; of anything else only the kind is told (500).
HttpError as_http_error(const std::exception_ptr& thrown);

}  // namespace cupel

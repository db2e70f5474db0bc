#include "cupel/checkpoint/json_diagnosis.h"

#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"
#include "cupel/checkpoint/quote.h"

namespace cupel {
namespace {

using nlohmann::json;

// Stops at the first fault: a syntax error, or a number that is no 64-bit integer.
class FaultFinder : public nlohmann::json_sax<json> {
 public:
  std::string member;        // the outermost key passed last
  std::string number;        // the number at fault, as written
  std::size_t position = 0;  // of the syntax error
  std::string syntax;        // the parser's message

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(std::int64_t /*value*/) override { return true; }
  bool number_unsigned(std::uint64_t /*value*/) override { return true; }
  bool number_float(double /*value*/, const std::string& text) override {
    number = text;
    return text.find_first_of(".eE") != std::string::npos;  // else an integer beyond 64 bits
  }
  bool string(std::string& /*value*/) override { return true; }
  bool binary(json::binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*elements*/) override { return ++depth_ > 0; }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t /*elements*/) override { return ++depth_ > 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool key(std::string& value) override {
    if (depth_ == 1) member = value;
    return true;
  }
  bool parse_error(std::size_t at, const std::string& /*token*/,
                   const json::exception& error) override {
    position = at;
    syntax = error.what();
    return false;
  }

 private:
  int depth_ = 0;
};

}  // namespace

void throw_json_error(std::string_view json_text, std::string_view file, std::string_view member,
                      std::string_view reason) {
  FaultFinder fault;
  const bool parsed = json::sax_parse(json_text, &fault);
  if (!parsed && fault.syntax.empty()) {
    throw InputError(fmt::format("{}: {} {}", file, member, quote(fault.member)),
                     "integers of at most 64 bits", quote(fault.number));
  }
  if (!parsed) {
    throw InputError(fmt::format("{}: byte offset {} of the JSON text", file, fault.position),
                     "valid JSON", fmt::format("an error: {}", quote(fault.syntax)));
  }
  throw InputError(fmt::format("{}: JSON text", file), "valid JSON",
                   fmt::format("an error: {}", reason));
}

}  // namespace cupel

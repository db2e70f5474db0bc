// Why a JSON text does not parse: the fast parser only says that it does not.
#pragma once

#include <string_view>

namespace cupel {

// Reads `json` again, slowly, and throws the InputError with the byte offset of the fault in the
// text or, for a number of more than 64 bits, with the member of the outermost object that holds it
// (`member` says what such a member is, for example "tensor"). `reason` is the fast parser's.
[[noreturn]] void throw_json_error(std::string_view json, std::string_view file,
                                   std::string_view member, std::string_view reason);

}  // namespace cupel

// Text from a file, made safe for one line of an error message.
#pragma once

#include <string>
#include <string_view>

namespace cupel {

// `text` in double quotes; control bytes, quotes and backslashes escaped, cut after 200 bytes.
std::string quote(std::string_view text);

// `FILE: tensor "NAME"`, and with a field `FILE: tensor "NAME": FIELD`: the `where` of an error.
std::string tensor_where(std::string_view file, std::string_view tensor,
                         std::string_view field = {});

}  // namespace cupel

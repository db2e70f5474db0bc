#include "cupel/text/chat/template_text.h"

#include <algorithm>

#include "cupel/text/chat/special_tokens.h"

namespace cupel {

std::string fill_template(
    std::string_view text,
    std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
  std::string out;
  while (true) {
    const std::size_t open = text.find('{');
    out += text.substr(0, open);
    if (open == std::string_view::npos) return out;
    text.remove_prefix(open);
    const std::size_t close = std::min(text.find('}'), text.size() - 1);
    const auto* value = std::find_if(values.begin(), values.end(), [&](const auto& entry) {
      return entry.first == text.substr(1, close - 1);
    });
    const bool known = close > 0 && value != values.end();
    out += known ? value->second : text.substr(0, 1);
    text.remove_prefix(known ? close + 1 : 1);
  }
}

std::string fill_tools_template(std::string_view text, std::string_view schemas) {
  return fill_template(text, {{"tool_schemas", schemas},
                              {"dsml_token", kDsmlText},
                              {"thinking_start_token", kThinkText},
                              {"thinking_end_token", kEndThinkText}});
}

}  // namespace cupel

#include "cupel/server/token_text.h"

#include <fmt/format.h>

#include "cupel/text/utf8.h"

namespace cupel {

using nlohmann::json;

std::string Utf8Stream::feed(std::string_view bytes) {
  held_ += bytes;
  const std::size_t whole = complete_utf8_prefix(held_).size();
  std::string text = to_valid_utf8(std::string_view(held_).substr(0, whole));
  held_.erase(0, whole);
  return text;
}

std::string Utf8Stream::finish() {
  std::string text = to_valid_utf8(held_);
  held_.clear();
  return text;
}

std::string token_label(const Tokenizer& tokenizer, std::int32_t id) {
  const std::string_view bytes = tokenizer.token_bytes(id);
  if (valid_utf8_prefix(bytes).size() == bytes.size()) return std::string(bytes);
  std::string label = "bytes:";
  for (const char byte : bytes) {
    label += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  }
  return label;
}

std::string ids_text(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  return to_valid_utf8(tokenizer.decode(ids));
}

json finish_name(FinishReason finish) {
  return finish == FinishReason::kLength ? "length" : "stop";
}

json matched_stop(const Generation& generation) {
  if (generation.finish == FinishReason::kStopString) return generation.stop;
  if (generation.finish == FinishReason::kEos) return generation.output_ids.back();
  return nullptr;
}

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string sse(std::string_view data) {
  return fmt::format("data: {}\n\n", data);
}

}  // namespace cupel

#include "cupel/text/chat/python_json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace cupel {
namespace {

std::string python_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  // repr() is fixed notation for decimal exponents from -4 to 15.
  const double size = std::fabs(value);
  const bool fixed = size == 0 || (size >= 1e-4 && size < 1e16);
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 fixed ? std::chars_format::fixed : std::chars_format::scientific)
                       .ptr;
  std::string out(text.data(), end);
  if (fixed && out.find('.') == std::string::npos) out += ".0";
  return out;
}

// Receives a value as a stream of events and writes its text.
class PythonJsonWriter {
 public:
  void scalar(std::string_view text) {
    separate();
    text_ += text;
  }
  void open(char bracket) {
    separate();
    text_ += bracket;
    first_.push_back(true);
  }
  void key(std::string_view name) {
    separate();
    text_ += python_json_string(name);
    text_ += ": ";
    after_key_ = true;
  }
  void close(char bracket) {
    first_.pop_back();
    text_ += bracket;
  }
  std::size_t depth() const { return first_.size(); }
  std::string take() { return std::exchange(text_, {}); }

 private:
  void separate() {
    if (std::exchange(after_key_, false) || first_.empty()) return;
    if (!first_.back()) text_ += ", ";
    first_.back() = false;
  }

  std::string text_;
  std::vector<bool> first_;  // for each open bracket: nothing in it yet
  bool after_key_ = false;
};

void write_value(PythonJsonWriter& writer, const ChatJson& value) {
  switch (value.type()) {
    case ChatJson::value_t::object:
      writer.open('{');
      for (const auto& [key, member] : value.items()) {
        writer.key(key);
        write_value(writer, member);
      }
      return writer.close('}');
    case ChatJson::value_t::array:
      writer.open('[');
      for (const ChatJson& element : value) write_value(writer, element);
      return writer.close(']');
    case ChatJson::value_t::string:
      return writer.scalar(python_json_string(value.get_ref<const std::string&>()));
    case ChatJson::value_t::boolean:
      return writer.scalar(value.get<bool>() ? "true" : "false");
    case ChatJson::value_t::number_integer:
      return writer.scalar(std::to_string(value.get<std::int64_t>()));
    case ChatJson::value_t::number_unsigned:
      return writer.scalar(std::to_string(value.get<std::uint64_t>()));
    case ChatJson::value_t::number_float:
      return writer.scalar(python_float(value.get<double>()));
    case ChatJson::value_t::null:
    case ChatJson::value_t::binary:  // JSON text has none
    case ChatJson::value_t::discarded:
      return writer.scalar("null");
  }
}

// The parser's events for the text of an object. Each returns false to stop.
class MemberReader final : public nlohmann::json_sax<ChatJson> {
 public:
  bool null() override { return scalar("null"); }
  bool boolean(bool value) override { return scalar(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) override { return scalar(std::to_string(value)); }
  bool number_unsigned(std::uint64_t value) override { return scalar(std::to_string(value)); }
  bool number_float(double value, const std::string& text) override {
    // An integer too large for 64 bits arrives here too.
    const bool integer = text.find_first_of(".eE") == std::string::npos;
    return scalar(integer ? text : python_float(value));
  }
  bool string(std::string& value) override {
    if (!in_object_) return false;
    if (writer_.depth() == 0) return finish(true, std::move(value));
    return scalar(python_json_string(value));
  }
  bool binary(ChatJson::binary_t& /*value*/) override { return false; }

  bool start_object(std::size_t /*elements*/) override {
    if (!std::exchange(in_object_, true)) return true;
    return writer_.open('{'), true;
  }
  bool key(std::string& name) override {
    if (writer_.depth() > 0) return writer_.key(name), true;
    const auto [place, added] = places_.emplace(name, members_.size());
    if (added) members_.push_back({.key = name, .is_string = false, .value = ""});
    current_ = place->second;
    return true;
  }
  bool end_object() override { return writer_.depth() == 0 || close('}'); }
  bool start_array(std::size_t /*elements*/) override {
    if (!in_object_) return false;
    return writer_.open('['), true;
  }
  bool end_array() override { return close(']'); }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    return false;
  }

  std::vector<JsonMember> take() { return std::move(members_); }

 private:
  bool scalar(std::string_view text) {
    if (!in_object_) return false;
    writer_.scalar(text);
    return writer_.depth() > 0 || finish(false, writer_.take());
  }
  bool close(char bracket) {
    writer_.close(bracket);
    return writer_.depth() > 0 || finish(false, writer_.take());
  }
  bool finish(bool is_string, std::string value) {
    members_[current_].is_string = is_string;
    members_[current_].value = std::move(value);
    return true;
  }

  bool in_object_ = false;
  PythonJsonWriter writer_;  // of the member's value that is being read
  std::vector<JsonMember> members_;
  std::unordered_map<std::string, std::size_t> places_;
  std::size_t current_ = 0;
};

}  // namespace

std::string python_json(const ChatJson& value) {
  PythonJsonWriter writer;
  write_value(writer, value);
  return writer.take();
}

std::string python_json_string(std::string_view text) {
  return ChatJson(text).dump(-1, ' ', false, ChatJson::error_handler_t::replace);
}

bool is_json(std::string_view text) {
  return text.find('\0') == std::string_view::npos && ChatJson::accept(text);
}

std::optional<std::vector<JsonMember>> json_members(std::string_view text) {
  MemberReader reader;
  if (text.find('\0') != std::string_view::npos || !ChatJson::sax_parse(text, &reader))
    return std::nullopt;
  return reader.take();
}

}  // namespace cupel

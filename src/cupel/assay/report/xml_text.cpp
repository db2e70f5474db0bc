#include "cupel/assay/report/xml_text.h"

#include "cupel/assay/report/printable.h"

namespace cupel {
namespace {

struct StringWriter : pugi::xml_writer {
  std::string text;
  void write(const void* data, std::size_t size) override {
    text.append(static_cast<const char*>(data), size);
  }
};

}  // namespace

pugi::xml_node add(pugi::xml_node parent, const char* name, Attributes attributes) {
  pugi::xml_node node = parent.append_child(name);
  for (const auto& [key, value] : attributes) {
    node.append_attribute(key).set_value(printable(value).c_str());
  }
  return node;
}

pugi::xml_node add(pugi::xml_node parent, const char* name, Attributes attributes,
                   std::string_view text) {
  pugi::xml_node node = add(parent, name, attributes);
  add_text(node, text);
  return node;
}

void add_text(pugi::xml_node parent, std::string_view text) {
  parent.append_child(pugi::node_pcdata).set_value(printable(text).c_str());
}

std::string serialise(const pugi::xml_document& document) {
  StringWriter writer;
  document.save(writer, "", pugi::format_raw | pugi::format_no_declaration, pugi::encoding_utf8);
  return std::move(writer.text);
}

}  // namespace cupel

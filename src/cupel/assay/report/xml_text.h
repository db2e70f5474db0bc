// XML and HTML are built as trees, so that all text is escaped by the library that writes them.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <pugixml.hpp>

namespace cupel {

using Attributes = std::initializer_list<std::pair<const char*, std::string>>;

// Appends an element; values of attributes are made printable().
pugi::xml_node add(pugi::xml_node parent, const char* name, Attributes attributes = {});
// Likewise, with text in it (made printable()); an empty text still writes an end tag.
pugi::xml_node add(pugi::xml_node parent, const char* name, Attributes attributes,
                   std::string_view text);
void add_text(pugi::xml_node parent, std::string_view text);

// The document in UTF-8 without an XML declaration or added blanks.
std::string serialise(const pugi::xml_document& document);

}  // namespace cupel

// Parts of the HTML page.
#pragma once

#include <string>
#include <string_view>

#include <pugixml.hpp>

#include "cupel/assay/verdict.h"

namespace cupel {

struct AssayReport;

// "pass", "regression" or "inconclusive": the class of everything that shows a verdict.
std::string verdict_class(Verdict verdict);
void add_badge(pugi::xml_node parent, std::string_view verdict);

// <section> with its heading and a paragraph of explanation (none if empty).
pugi::xml_node add_section(pugi::xml_node parent, const std::string& id, const std::string& title,
                           const std::string& text);

// A row of a chart: name, drawing (returned, to be filled) and numbers.
pugi::xml_node add_chart_row(pugi::xml_node parent, const std::string& name,
                             const std::string& numbers);

// A table that scrolls inside its own box where the page is too narrow.
pugi::xml_node add_table(pugi::xml_node parent, const std::string& caption,
                         std::initializer_list<const char*> headings);

void add_agreement_section(pugi::xml_node page, const AssayReport& report);
void add_probe_section(pugi::xml_node page, const AssayReport& report);
void add_noise_section(pugi::xml_node page, const AssayReport& report);
void add_history_section(pugi::xml_node page, const AssayReport& report);
void add_origin_section(pugi::xml_node page, const AssayReport& report);
void add_flips_section(pugi::xml_node page, const AssayReport& report);

}  // namespace cupel

// The report as one HTML page.
#pragma once

#include <cstddef>
#include <string>

namespace cupel {

struct AssayReport;

// At most this many flipped items of a comparison are shown; a line says how many there are more.
inline constexpr std::size_t kFlipsShown = 100;

// A self-contained page: style and SVG inside, no script, nothing fetched (its content security
// policy forbids both). For light and dark, from 360 pixels of width on.
std::string render_html(const AssayReport& report);

// page.css.
const char* page_style();

}  // namespace cupel

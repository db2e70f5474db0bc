// The report as Markdown, for the summary of a CI job (GitHub takes at most 1 MiB).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cupel {

struct AssayReport;

inline constexpr std::size_t kMarkdownLimit = std::size_t{1} << 20;  // bytes

// GitHub-flavoured Markdown of at most `limit` bytes (at least 4096): verdicts first, then cells,
// notes and flipped items. What does not fit is left out from the end of each part, and a line says
// how many.
std::string render_markdown(const AssayReport& report, std::size_t limit = kMarkdownLimit);

// One line of text as Markdown shows it, whatever it holds; cut to 200 characters.
std::string markdown_text(std::string_view text);

// A fenced block that `text` cannot end, of whole lines.
std::string markdown_fence(std::string_view text);

}  // namespace cupel

// Reading ahead in a memory map, and letting go of it.
#pragma once

#include <cstddef>
#include <span>

namespace cupel {

// Asks the system to read the pages of `bytes` soon, in large pieces and without waiting. Touching
// a map page by page reads one small piece at a time: more than ten times slower. A hint: never
// fails.
void prefetch(std::span<const std::byte> bytes);

// Takes the pages that lie wholly within `bytes` out of the process's resident memory; touching
// them again brings them back. For read-only maps of files only. A hint: never fails.
void release_pages(std::span<const std::byte> bytes);

}  // namespace cupel

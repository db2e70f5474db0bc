// The key that requests carry.
#pragma once

#include <string>
#include <string_view>

namespace cupel {

// True if `header` is "Bearer " and the key. Takes the same time wherever they differ.
bool bearer_key_matches(std::string_view header, std::string_view key);

// The key from a file, or else from the environment variable CUPEL_API_KEY; empty if there is
// neither. Line ends around it are not part of it. Throws InputError for a file without a key, or a
// key that no header can carry.
std::string load_api_key(const std::string& file);

}  // namespace cupel

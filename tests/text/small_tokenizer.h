// A tokenizer.json with a token for every byte (id = byte) and merges of the test's choice.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cupel/text/byte_alphabet.h"
#include "cupel/text/pretokenizer.h"

namespace cupel::test {

// Merges in vocabulary text, by rank; their results get the ids from 256 up.
inline nlohmann::json small_tokenizer(
    const std::vector<std::pair<std::string, std::string>>& merges = {}) {
  using nlohmann::json;
  json vocabulary = json::object();
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[byte_to_alphabet(static_cast<std::uint8_t>(byte))] = byte;
  }
  json merge_list = json::array();
  for (const auto& [left, right] : merges) {
    const auto id = vocabulary.size();
    if (!vocabulary.contains(left + right)) vocabulary[left + right] = id;
    merge_list.push_back({left, right});
  }
  json splits = json::array();
  for (const std::string_view pattern : kSplitPatterns) {
    splits.push_back({{"type", "Split"},
                      {"pattern", {{"Regex", pattern}}},
                      {"behavior", "Isolated"},
                      {"invert", false}});
  }
  splits.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
  return {{"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", splits}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"added_tokens", json::array()},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merge_list}}}};
}

inline nlohmann::json added_token(int id, const std::string& content, bool normalized = false) {
  return {{"id", id},        {"content", content},       {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", normalized}, {"special", true}};
}

}  // namespace cupel::test

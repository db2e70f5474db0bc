// What a body of /generate asks for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cupel/server/context.h"

namespace cupel {

struct NativeRequest {
  // One prompt.
  struct Item {
    GenerationRequest request;
    std::string id;          // rid, or of our own
    int logprob_start = -1;  // first prompt token that log probabilities are told of; -1: none
    int top_logprobs = 0;
  };
  std::vector<Item> items;
  int n = 1;
  bool list = false;  // the answer is a list
  bool stream = false;
  bool logprob_text = false;

  // Of sequence i.
  const Item& item(std::size_t i) const { return items[i / static_cast<std::size_t>(n)]; }
};

// Throws HttpError.
NativeRequest read_generate(std::string_view body, const ServerContext& context);

}  // namespace cupel

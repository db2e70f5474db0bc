// Bodies of the requests of a benchmark: streamed, temperature 0, up to the length asked for.
#pragma once

#include <span>
#include <string>

#include "cupel/eval/endpoint.h"
#include "cupel/load/workload.h"

namespace cupel {

struct LoadRequestForm {
  Api api = Api::kGenerate;
  std::string served_model;  // the OpenAI interfaces name it
  bool ignore_eos = true;    // of SGLang, vLLM, llama.cpp and Cupel; no part of OpenAI's interface
};

// The path that they are posted to.
std::string load_path(Api api);

std::string load_body(const LoadRequestForm& form, const LoadPrompt& prompt);

// One request of all prompts, each with the output length of the first. Throws InputError for chat,
// which has no such form.
std::string batch_body(const LoadRequestForm& form, std::span<const LoadPrompt> prompts);

}  // namespace cupel

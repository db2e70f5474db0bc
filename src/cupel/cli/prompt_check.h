// Whether a model can serve a task, before any file of its records is touched.
#pragma once

#include "cupel/checkpoint/config.h"
#include "cupel/eval/task.h"
#include "cupel/text/tokenizer.h"

namespace cupel {

// Throws InputError naming the item whose prompt and new tokens go beyond the context.
void check_prompts(const Task& task, const Tokenizer& tokenizer, const ModelConfig& config);

}  // namespace cupel

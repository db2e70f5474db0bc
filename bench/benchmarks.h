// The benchmarks of cupel_bench. Each prints a table of ratios between figures of one run.
#pragma once

#include <string>
#include <vector>

#include "cupel/kernels/executor.h"

namespace cupel::bench {

struct Settings {
  Executor* executor = nullptr;
  ThreadPool* pool = nullptr;  // of the executor
  int repeats = 5;
  std::string load = "random";  // a checkpoint folder, or random weights in memory
  std::string config = "data/v4-flash/config.0731.json";  // of random weights: the full model
  std::vector<int> layer_ids = {2, 3};                    // its layers
  int vocabulary = 0;                                     // 0: as the model has it
  std::string cupel = "build/release/bin/cupel";          // of wordmath: the program
  std::string weights = "repack";                         // of model: or map
  int tokens = 8192;                                      // of the prompt
  std::string product;  // of one-row, many-rows and contract: those whose name holds this
};

// One-row products at V4-Flash shapes, weights cycled over 1 GiB, against a plain sum of memory.
void one_row(const Settings& settings);
// Products of 512 rows, dequantisation included, against OpenBLAS sgemm of the same shape.
void many_rows(const Settings& settings);
// One-row products against the same kernels free to add in any order.
void contract(const Settings& settings);
// Attention and choice of entries of one token at contexts of 1k to 64k.
void context(const Settings& settings);
// `cupel eval wordmath` on a tiny model against sgemm doing its multiply-adds.
void wordmath(const Settings& settings);
// Decode steps of a tiny model with a JSON schema against those without; the time of masks for
// 129,280 tokens against sampling from as many logits.
void constraint(const Settings& settings);
// A model of true shapes: a decode step against reading the bytes it needs, and a prefill against
// sgemm doing its multiply-adds.
void model(const Settings& settings);

}  // namespace cupel::bench

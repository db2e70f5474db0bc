// The benchmarks of cupel_bench. Each prints a table of ratios between figures of one run.
#pragma once

#include "cupel/base/thread_pool.h"

namespace cupel::bench {

struct Settings {
  ThreadPool* pool = nullptr;
  int repeats = 5;
};

// One-row products at V4-Flash shapes, weights cycled over 1 GiB, against a plain sum of memory.
void one_row(const Settings& settings);
// Products of 512 rows, dequantisation included, against OpenBLAS sgemm of the same shape.
void many_rows(const Settings& settings);

}  // namespace cupel::bench

// Progress over bytes, on standard error.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cupel/checkpoint/plain_read.h"

namespace cupel {

// A line now and then: bytes done, in all, rate, time left. Calls must not overlap.
std::function<void(std::uint64_t, std::uint64_t)> byte_progress(const std::string& label);

// "LABEL: 1.2 GB/s; a plain read of the same files 2.0 GB/s; ratio 0.60" on standard error.
void print_throughput(const std::string& label, std::uint64_t bytes, double seconds,
                      const PlainRead& plain);

}  // namespace cupel

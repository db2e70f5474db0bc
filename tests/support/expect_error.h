// What every test of bad input asserts: the error's type, its exit code, and what its message
// names.
#pragma once

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/base/error.h"

namespace cupel::test {

// Runs `body` and expects an InputError whose message holds every one of `parts`.
template <typename Body>
void expect_input_error(const Body& body, const std::vector<std::string>& parts) {
  try {
    body();
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    for (const std::string& part : parts) EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
    return;
  }
  ADD_FAILURE() << "no error; expected one that names " << ::testing::PrintToString(parts);
}

}  // namespace cupel::test

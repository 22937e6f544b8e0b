// SPDX-License-Identifier: Apache-2.0
#include <support/skip_case.hpp>

// The header is there already, precompiled: the macro makes it add what it
// leaves out elsewhere.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <string_view>

namespace {

int skipped_cases = 0;

constexpr int skip_code = 77; // SKIP_RETURN_CODE of CTest

/// CTest runs each case on its own, by its name.
bool runs_one_case(int argc, char** argv) {
  return argc > 1 && std::string_view{argv[1]}.starts_with("--test-case=");
}

} // namespace

namespace troupe::test {

void skip_case(const char* needs) {
  ++skipped_cases;
  std::printf("skipped: %s\n", needs); // tools/test looks for these lines
}

} // namespace troupe::test

int main(int argc, char** argv) {
  const int status = doctest::Context{argc, argv}.run();
  const bool skipped = skipped_cases > 0 && runs_one_case(argc, argv);
  return status == 0 && skipped ? skip_code : status;
}

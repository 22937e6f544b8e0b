// SPDX-License-Identifier: Apache-2.0
#include <support/skip_case.hpp>

// The precompiled header already includes doctest without this macro. Including
// it again adds doctest's implementation.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#ifdef __SANITIZE_ADDRESS__
/// Gloo forgets the addresses of a host that it cannot listen at.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:gloo::transport::tcp::CreateDevice\n";
}
#endif

namespace {

constexpr int skip_code = 77; // SKIP_RETURN_CODE of CTest

struct {
  bool named = false; // each case prints its name when it starts
  int started = 0;
  int skipped = 0;
  bool current_is_skipped = false;
} cases;

struct case_counter : doctest::IReporter {
  explicit case_counter(const doctest::ContextOptions&) {}

  void test_case_start(const doctest::TestCaseData& data) override {
    ++cases.started;
    cases.current_is_skipped = false;
    if (!cases.named)
      return;
    std::printf("case: %s\n", data.m_name);
    std::fflush(stdout); // the process may be killed
  }
  void test_case_end(const doctest::CurrentTestCaseStats&) override {
    cases.skipped += cases.current_is_skipped ? 1 : 0;
  }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};

REGISTER_LISTENER("case_counter", 1, case_counter);

/// With TROUPE_TESTS_PER=file, CTest runs the cases of a file in one process.
/// The log must then name the case that hangs or crashes.
bool runs_a_file(int argc, char** argv) {
  return std::any_of(argv, argv + argc, [](std::string_view argument) {
    return argument.starts_with("--source-file=");
  });
}

} // namespace

namespace troupe::test {

void skip_case(const char* needs) {
  cases.current_is_skipped = true;
  std::printf("skipped: %s\n", needs); // tools/test looks for these lines
}

} // namespace troupe::test

int main(int argc, char** argv) {
  cases.named = runs_a_file(argc, argv);
  doctest::Context context{argc, argv};
  const int status = context.run();
  if (context.shouldExit()) // asked for a list, not for a run
    return status;
  if (cases.started == 0) {
    std::fputs("no test case has this name or file\n", stderr);
    return 1;
  }
  return status == 0 && cases.skipped == cases.started ? skip_code : status;
}

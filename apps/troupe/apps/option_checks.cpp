// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/option_checks.hpp>

#include <string>

namespace troupe::apps {

namespace {

CLI::Validator check(bool (*holds)(double), const char* rule,
                     const char* name) {
  const auto fault = [holds, rule](std::string& text) -> std::string {
    double number = 0;
    if (!CLI::detail::lexical_cast(text, number) || holds(number))
      return {};
    return std::string("must ") + rule + ", not " + text;
  };
  return {fault, name, name};
}

} // namespace

CLI::Validator positive() {
  return check([](double x) { return x > 0; }, "be more than 0", "POSITIVE");
}

CLI::Validator not_negative() {
  return check([](double x) { return x >= 0; }, "not be negative",
               "NONNEGATIVE");
}

CLI::Validator thread_count() {
  return check([](double x) { return x >= 1 && x <= 4096; },
               "be from 1 to 4096", "THREADS");
}

CLI::Validator in_flight_count() {
  return check([](double x) { return x >= 1 && x <= 1024; },
               "be from 1 to 1024", "STEPS");
}

CLI::Validator not_empty() {
  return {[](std::string& text) -> std::string {
            return text.empty() ? "must not be empty" : "";
          },
          "", "NOT_EMPTY"};
}

} // namespace troupe::apps

// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/option_checks.hpp>

#include <array>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>

namespace troupe::apps {

namespace {

/// "1000000", "0.001".
std::string number_text(double number) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.10g", number);
  return text.data();
}

/// @param rule what a number breaks; empty if it breaks none
CLI::Validator check(std::function<std::string(double)> rule,
                     const char* name) {
  auto fault = [rule = std::move(rule)](std::string& text) -> std::string {
    double number = 0;
    if (!CLI::detail::lexical_cast(text, number))
      return {};
    const auto broken = rule(number);
    return broken.empty() ? "" : "must " + broken + ", not " + text;
  };
  return {std::move(fault), name, name};
}

std::string at_most(double most, double x) {
  return x <= most ? "" : "be at most " + number_text(most);
}

} // namespace

CLI::Validator positive(double most) {
  return check(
    [=](double x) {
      return x > 0 ? at_most(most, x) : std::string{"be more than 0"};
    },
    "POSITIVE");
}

CLI::Validator not_negative(double most) {
  return check(
    [=](double x) {
      return x >= 0 ? at_most(most, x) : std::string{"not be negative"};
    },
    "NONNEGATIVE");
}

CLI::Validator from_to(double least, double most) {
  return check(
    [=](double x) {
      return x >= least && x <= most
               ? std::string{}
               : "be from " + number_text(least) + " to " + number_text(most);
    },
    "NUMBER");
}

CLI::Validator batch_size() {
  return positive(4294967296.0);
}

CLI::Validator thread_count() {
  return from_to(1, 4096);
}

CLI::Validator in_flight_count() {
  return from_to(1, 1024);
}

CLI::Validator name_list() {
  return {[](std::string& text) -> std::string {
            const bool has_empty_name = text.empty() || text.front() == ','
                                        || text.back() == ','
                                        || text.find(",,") != text.npos;
            return has_empty_name
                     ? "must be names with commas between, not '" + text + "'"
                     : "";
          },
          "", "NAMES"};
}

CLI::Validator not_empty() {
  return {[](std::string& text) -> std::string {
            return text.empty() ? "must not be empty" : "";
          },
          "", "NOT_EMPTY"};
}

} // namespace troupe::apps

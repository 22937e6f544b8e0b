// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/option_checks.hpp>

#include <troupe/apps/common_options.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
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

/// True for a whole number above 2^64 - 1. The parser would silently take
/// 2^64 - 1 instead.
bool is_too_large(const std::string& text) {
  std::uint64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, number);
  return code == std::errc::result_out_of_range && rest == end;
}

/// Also refuses empty text, which the parser would take for 0.
/// @param rule returns the rule that a number breaks, or empty text
CLI::Validator check(std::function<std::string(double)> rule,
                     const char* name) {
  auto fault = [rule = std::move(rule)](std::string& text) -> std::string {
    if (text.empty())
      return "must not be empty";
    double number = 0;
    if (!CLI::detail::lexical_cast(text, number))
      return {};
    const auto broken = std::isnan(number)   ? "be a number"
                        : is_too_large(text) ? "be below 2^64"
                                             : rule(number);
    return broken.empty() ? "" : "must " + broken + ", not " + text;
  };
  return {std::move(fault), name, name};
}

std::string at_most(double most, double x) {
  return x <= most ? "" : "be at most " + number_text(most);
}

/// Converts "8GiB" to "8589934592". False if it is not a size from 1 to `most`
/// bytes.
bool size_to_bytes(std::string& text, std::uint64_t most) {
  if (text.find_first_of("0123456789") == text.npos)
    return false; // the parser would take a unit alone for one
  try {
    if (!CLI::AsSizeValue(false)(text).empty())
      return false;
  } catch (const CLI::ValidationError&) { // unknown unit
    return false;
  }
  std::uint64_t bytes = 0;
  const auto* end = text.data() + text.size();
  return std::from_chars(text.data(), end, bytes).ptr == end && bytes > 0
         && bytes <= most;
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

CLI::Validator number_list(const CLI::Validator& each) {
  return {[each](std::string& text) -> std::string {
            double number = 0;
            for (const auto& item : split_list(text)) {
              if (auto broken = each(item); !broken.empty())
                return broken;
              if (!CLI::detail::lexical_cast(item, number))
                return "must be numbers with commas between, not '" + text
                       + "'";
            }
            return "";
          },
          "", "NUMBERS"};
}

std::vector<double> parse_numbers(const std::string& list) {
  std::vector<double> numbers;
  for (const auto& item : split_list(list))
    CLI::detail::lexical_cast(item, numbers.emplace_back());
  return numbers;
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

CLI::Validator whole_number() {
  return {[](std::string& text) -> std::string {
            const auto begin = text.starts_with('-') ? 1u : 0u;
            const bool is_whole =
              text.size() > begin
              && text.find_first_not_of("0123456789", begin) == text.npos;
            return is_whole ? ""
                            : "must be a whole number, not "
                                + (text.empty() ? "empty" : text);
          },
          "NUMBER", "NUMBER"};
}

CLI::Validator memory_size() {
  return {
    [](std::string& text) -> std::string {
      const auto given = text.empty() ? "empty" : text;
      if (size_to_bytes(text, std::uint64_t{1} << 60))
        return "";
      return "must be a whole number of bytes, KiB, MiB, GiB, TiB, PiB or "
             "EiB from 1 to 2^60 bytes, such as 2500MiB, not "
             + given;
    },
    "SIZE", "SIZE"};
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

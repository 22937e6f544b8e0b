// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/option_checks.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace troupe::apps {

namespace {

/// "1000000", "0.001".
std::string number_text(double number) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.10g", number);
  return text.data();
}

/// Whether it is a whole number above 2^64 - 1, for which the parser would take
/// that.
bool is_too_large(const std::string& text) {
  std::uint64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, number);
  return code == std::errc::result_out_of_range && rest == end;
}

/// @param rule what a number breaks; empty if it breaks none
CLI::Validator check(std::function<std::string(double)> rule,
                     const char* name) {
  auto fault = [rule = std::move(rule)](std::string& text) -> std::string {
    double number = 0;
    if (!CLI::detail::lexical_cast(text, number))
      return {};
    const auto broken = is_too_large(text) ? "be below 2^64" : rule(number);
    return broken.empty() ? "" : "must " + broken + ", not " + text;
  };
  return {std::move(fault), name, name};
}

std::string at_most(double most, double x) {
  return x <= most ? "" : "be at most " + number_text(most);
}

/// Bytes of a unit, "" to "EiB" in any case; 0: there is none such.
std::uint64_t bytes_of_unit(std::string unit) {
  std::ranges::transform(unit, unit.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  if (unit.empty() || unit == "b")
    return 1;
  constexpr std::string_view prefixes = "kmgtpe";
  const auto place = prefixes.find(unit[0]);
  const auto rest = std::string_view{unit}.substr(1);
  if (place == prefixes.npos
      || (!rest.empty() && rest != "b" && rest != "i" && rest != "ib"))
    return 0;
  return std::uint64_t{1} << (10 * (place + 1));
}

/// "8 GiB" in bytes; nothing if it is no size from 1 to `most`.
std::optional<std::uint64_t> parse_size(const std::string& text,
                                        std::uint64_t most) {
  std::uint64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc{})
    return std::nullopt;
  const std::string_view blanks_and_unit{rest, end};
  const auto begin =
    std::min(blanks_and_unit.find_first_not_of(' '), blanks_and_unit.size());
  const auto unit = bytes_of_unit(std::string{blanks_and_unit.substr(begin)});
  if (unit == 0 || number == 0 || number > most / unit)
    return std::nullopt;
  return number * unit;
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

CLI::Validator memory_size() {
  constexpr auto most = std::uint64_t{1} << 60;
  return {[](std::string& text) -> std::string {
            const auto bytes = parse_size(text, most);
            if (!bytes)
              return "must be a whole number of bytes, KiB, MiB, GiB or TiB "
                     "from 1 to 2^60 bytes, such as 2500MiB, not "
                     + (text.empty() ? "empty" : text);
            text = std::to_string(*bytes);
            return "";
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

// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/delays/delay_table.hpp>

#include <troupe/apps/common_options.hpp>
#include <troupe/apps/stragglers/op_key.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

namespace troupe::apps {

namespace {

constexpr std::array<std::pair<std::string_view, double>, 4> units = {
  {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};

constexpr double longest_ns = 1e12;
constexpr double largest_factor = 1e6;

/// Parses "10us" and returns nanoseconds; negative if it is not a time.
double parse_time(std::string_view text) {
  double number = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc{})
    return -1;
  for (auto& [unit, ns] : units)
    if (unit == std::string_view(rest, static_cast<std::size_t>(end - rest)))
      return number * ns;
  return -1;
}

/// Parses "x1.2"; 0 if it is not a factor of at least 1.
double parse_factor(std::string_view text) {
  double number = 0;
  const auto* end = text.data() + text.size();
  if (!text.starts_with('x'))
    return 0;
  const auto [rest, failure] = std::from_chars(text.data() + 1, end, number);
  return failure == std::errc{} && rest == end && number >= 1
             && number <= largest_factor
           ? number
           : 0;
}

std::string_view trimmed(std::string_view text) {
  constexpr auto blanks = " \t\r";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

} // namespace

std::set<std::string, std::less<>> op_types_of(const graph::program& program) {
  std::set<std::string, std::less<>> types;
  for (auto& block : program.blocks)
    for (auto& op : block.ops)
      types.insert(op.type);
  return types;
}

std::map<std::string, std::string, std::less<>>
op_outputs_of(const graph::program& program) {
  std::map<std::string, std::string, std::less<>> outputs;
  for (auto& block : program.blocks)
    for (auto& op : block.ops)
      if (auto key = key_of(op.type, op.outputs); !key.output.empty())
        outputs.emplace(std::move(key.output), std::move(key.type));
  return outputs;
}

delay_table delay_table::read(const std::vector<std::string>& texts_or_files,
                              grammar allowed, std::string option) {
  delay_table table(allowed, std::move(option));
  for (const auto& each : texts_or_files)
    table.add_all(each);
  return table;
}

void delay_table::add_all(const std::string& text_or_file) {
  if (allowed_ == grammar::times && text_or_file.find('=') == std::string::npos)
    return add_file(text_or_file);
  for (auto& entry : split_list(text_or_file))
    add(trimmed(entry));
}

void delay_table::add_file(const std::string& file) {
  if (costs_)
    throw usage_error(option_ + ": " + quoted_name(file)
                      + ": costs of one file only");
  try {
    if (names_file(file)) {
      costs_ = trace::cost_table::read(file);
      return;
    }
  } catch (const error& failure) {
    throw error(failure.code(), option_ + ": " + failure.message());
  }
  throw usage_error(option_
                    + ": neither entries TYPE=TIME nor a file of costs: "
                    + quoted_name(file));
}

void delay_table::add(std::string_view entry) {
  const auto sign = entry.find('=');
  const auto name = trimmed(entry.substr(0, sign));
  const auto text = sign == std::string_view::npos
                      ? std::string_view{}
                      : trimmed(entry.substr(sign + 1));
  const auto ns = parse_time(text);
  const auto factor = allowed_ == grammar::names ? parse_factor(text) : 0;
  const bool is_time = ns >= 0 && ns <= longest_ns;
  if (name.empty() || !(is_time || factor > 0))
    throw usage_error(option_
                      + (allowed_ == grammar::names
                           ? ": not NAME=TIME or NAME=xFACTOR, such as 10us or "
                             "x1.2: "
                           : ": not TYPE=TIME with a time such as 10us: ")
                      + quoted_name(std::string(entry)));
  const auto made = is_time ? delay{.ns = static_cast<std::uint64_t>(ns)}
                            : delay{.factor = factor};
  if (!delays_.emplace(name, made).second)
    throw usage_error(option_ + ": " + quoted_name(std::string(name))
                      + " is there twice");
}

void delay_table::require_known(
  const std::set<std::string, std::less<>>& op_types,
  const std::map<std::string, std::string, std::less<>>& outputs) const {
  for (const auto& [name, made] : delays_)
    if (name != "*" && !op_types.contains(name) && !outputs.contains(name))
      throw usage_error(
        option_ + ": the program has no op of type " + quoted_name(name)
        + (outputs.empty() ? ""
                           : ", and none whose first output has this name"));
}

delay delay_table::of(std::string_view op_type) const {
  auto found = delays_.find(op_type);
  if (found == delays_.end())
    found = delays_.find("*");
  return found == delays_.end() ? delay{} : found->second;
}

delay delay_table::of(std::string_view op_type, std::string_view output) const {
  const auto found = delays_.find(output);
  return found == delays_.end() ? of(op_type) : found->second;
}

std::vector<std::string> delay_table::names() const {
  std::vector<std::string> all;
  for (const auto& [name, made] : delays_)
    all.push_back(name);
  return all;
}

} // namespace troupe::apps

// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/attribute.hpp>

#include <algorithm>
#include <array>

namespace troupe {

namespace {

// In the order of the alternatives of `attribute`.
constexpr std::array<const char*, std::variant_size_v<attribute>> type_names = {
  "INT",      "FLOAT", "STRING", "INTS",   "FLOATS", "STRINGS", "BOOLEAN",
  "BOOLEANS", "BLOCK", "LONG",   "BLOCKS", "LONGS",  "FLOAT64", "FLOAT64S"};

[[noreturn]] void wrong_type(std::string_view name, const attribute& value,
                             const char* wanted) {
  throw error(errc::invalid_argument,
              "attribute \"" + std::string(name) + "\" is of type "
                + type_names[value.index()] + ", expected " + wanted);
}

// The value converted to `To`, if its type is one of `T...`.
template <class To, class... T>
To convert_from(std::string_view name, const attribute& value,
                const char* wanted) {
  return std::visit(
    [&](const auto& held) -> To {
      using type = std::decay_t<decltype(held)>;
      if constexpr ((std::is_same_v<type, T> || ...))
        return static_cast<To>(held);
      else
        wrong_type(name, value, wanted);
    },
    value);
}

using entry = attribute_map::entry;

bool name_less(const entry& a, const entry& b) {
  return a.first < b.first;
}

/// Sorts by name; if several entries have one name, the last is kept.
void sort_entries(std::vector<entry>& entries) {
  if (std::ranges::adjacent_find(
        entries, [](auto& a, auto& b) { return !(a.first < b.first); })
      == entries.end())
    return;
  std::ranges::stable_sort(entries, name_less);
  std::ranges::reverse(entries); // unique keeps the first
  const auto twice = std::ranges::unique(
    entries, [](auto& a, auto& b) { return a.first == b.first; });
  entries.erase(twice.begin(), twice.end());
  std::ranges::reverse(entries);
}

/// The first entry whose name is not less than the given one.
template <class Entries>
auto lower_bound(Entries& entries, std::string_view name) {
  return std::lower_bound(
    entries.begin(), entries.end(), name,
    [](const entry& e, std::string_view n) { return e.first < n; });
}

} // namespace

attribute_map::attribute_map(std::initializer_list<entry> init)
  : attribute_map(std::vector<entry>(init)) {}

attribute_map::attribute_map(std::vector<entry> entries) {
  sort_entries(entries);
  if (!entries.empty())
    entries_ = std::make_shared<std::vector<entry>>(std::move(entries));
}

std::vector<entry>& attribute_map::own_entries() {
  if (!entries_)
    entries_ = std::make_shared<std::vector<entry>>();
  else if (entries_.use_count() > 1)
    entries_ = std::make_shared<std::vector<entry>>(*entries_);
  return *entries_;
}

void attribute_map::set(std::string name, attribute value) {
  auto& entries = own_entries();
  auto at = lower_bound(entries, name);
  if (at != entries.end() && at->first == name)
    at->second = std::move(value);
  else
    entries.emplace(at, std::move(name), std::move(value));
}

void attribute_map::erase(std::string_view name) {
  if (!has(name))
    return;
  auto& entries = own_entries();
  entries.erase(lower_bound(entries, name));
}

const attribute* attribute_map::find(std::string_view name) const {
  if (!entries_)
    return nullptr;
  const auto at = lower_bound(std::as_const(*entries_), name);
  return at != entries_->end() && at->first == name ? &at->second : nullptr;
}

bool operator==(const attribute_map& a, const attribute_map& b) {
  return std::ranges::equal(a, b);
}

std::int64_t attribute_map::get_int(std::string_view name,
                                    std::int64_t otherwise) const {
  auto* value = find(name);
  return value ? convert_from<std::int64_t, std::int32_t, std::int64_t>(
           name, *value, "INT or LONG")
               : otherwise;
}

float attribute_map::get_float(std::string_view name, float otherwise) const {
  auto* value = find(name);
  return value ? convert_from<float, float, double>(name, *value,
                                                    "FLOAT or FLOAT64")
               : otherwise;
}

bool attribute_map::get_bool(std::string_view name, bool otherwise) const {
  auto* value = find(name);
  return value ? convert_from<bool, bool>(name, *value, "BOOLEAN") : otherwise;
}

std::string attribute_map::get_string(std::string_view name,
                                      std::string_view otherwise) const {
  auto* value = find(name);
  return value ? convert_from<std::string, std::string>(name, *value, "STRING")
               : std::string(otherwise);
}

std::vector<std::int64_t>
attribute_map::get_ints(std::string_view name,
                        std::vector<std::int64_t> otherwise) const {
  auto* value = find(name);
  if (!value)
    return otherwise;
  if (auto* ints = std::get_if<std::vector<std::int32_t>>(value))
    return {ints->begin(), ints->end()};
  return convert_from<std::vector<std::int64_t>, std::vector<std::int64_t>>(
    name, *value, "INTS or LONGS");
}

std::vector<double>
attribute_map::get_floats(std::string_view name,
                          std::vector<double> otherwise) const {
  auto* value = find(name);
  if (!value)
    return otherwise;
  if (auto* floats = std::get_if<std::vector<float>>(value))
    return {floats->begin(), floats->end()};
  return convert_from<std::vector<double>, std::vector<double>>(
    name, *value, "FLOATS or FLOAT64S");
}

std::vector<std::string>
attribute_map::get_strings(std::string_view name) const {
  using strings = std::vector<std::string>;
  auto* value = find(name);
  return value ? convert_from<strings, strings>(name, *value, "STRINGS")
               : strings{};
}

} // namespace troupe

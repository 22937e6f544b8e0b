// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/attribute.hpp>

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

// The value if it has one of the types `T...`, converted to `To`.
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

} // namespace

void attribute_map::erase(std::string_view name) {
  if (auto found = values_.find(name); found != values_.end())
    values_.erase(found);
}

const attribute* attribute_map::find(std::string_view name) const {
  auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
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

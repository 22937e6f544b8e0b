// SPDX-License-Identifier: Apache-2.0
#include <support/op_case.hpp>

#include <troupe/base/assert.hpp>

#include <algorithm>
#include <numeric>
#include <random>
#include <sstream>
#include <utility>

namespace troupe::test {

namespace {

using random_engine = std::mt19937_64;

double to_float(double value) {
  return double{static_cast<float>(value)};
}

/// Uniform in [0, 1).
double draw(random_engine& engine) {
  return static_cast<double>(engine() >> 11) * 0x1p-53;
}

std::size_t count_of(const shape& dims) {
  return static_cast<std::size_t>(dims.numel());
}

struct attribute_printer {
  std::ostream& out;

  template <class T>
  void operator()(const T& value) const {
    out << value;
  }
  template <class T>
  void operator()(const std::vector<T>& values) const {
    out << '[';
    for (const auto& value : values)
      (*this)(T(value)), out << ' ';
    out << ']';
  }
  void operator()(block_ref value) const { out << value.index; }
};

/// The input or output `slot` of the forward op.
const std::vector<op_value>& kept_value(const op_case& forward,
                                        const op_values& results,
                                        const std::string& slot) {
  if (auto it = forward.inputs.find(slot); it != forward.inputs.end())
    return it->second;
  return results.at(slot);
}

} // namespace

std::string describe(const op_case& c) {
  std::ostringstream text;
  text << c.type;
  for (const auto& [slot, values] : c.inputs)
    for (const auto& value : values)
      text << ' ' << slot << to_string(value.dims)
           << (value.is_rows() ? " rows" : "");
  for (const auto& [name, value] : c.attributes) {
    text << ' ' << name << '=';
    std::visit(attribute_printer{text}, value);
  }
  text << " ->";
  for (const auto& [slot, count] : c.outputs)
    text << ' ' << slot;
  return text.str();
}

op_value values_of(const shape& dims, std::vector<double> elements,
                   dtype type) {
  TROUPE_ASSERT(elements.size() == count_of(dims));
  return {.dims = dims, .type = type, .elements = std::move(elements)};
}

op_value random_values(const shape& dims, std::uint64_t seed, double low,
                       double high) {
  random_engine engine(seed);
  std::vector<double> elements(count_of(dims));
  for (double& e : elements)
    e = to_float(low + (high - low) * draw(engine));
  return values_of(dims, std::move(elements));
}

op_value distinct_values(const shape& dims, std::uint64_t seed) {
  random_engine engine(seed);
  const auto count = count_of(dims);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count; i > 1; --i)
    std::swap(order[i - 1], order[engine() % i]);
  const auto n = static_cast<double>(count);
  std::vector<double> elements;
  for (auto place : order) {
    const double odd = 2 * static_cast<double>(place) - n + (count % 2 == 0);
    elements.push_back(to_float(odd / n));
  }
  return values_of(dims, std::move(elements));
}

op_value random_indices(const shape& dims, std::uint64_t seed, std::int64_t low,
                        std::int64_t high, dtype type) {
  random_engine engine(seed);
  std::vector<double> elements(count_of(dims));
  for (double& e : elements)
    e = static_cast<double>(low
                            + static_cast<std::int64_t>(
                              draw(engine) * static_cast<double>(high - low)));
  return values_of(dims, std::move(elements), type);
}

op_value random_rows(const shape& whole, std::vector<std::int64_t> rows,
                     std::uint64_t seed) {
  auto dims = whole;
  dims[0] = static_cast<std::int64_t>(rows.size());
  auto value = random_values(dims, seed);
  value.rows = std::move(rows);
  value.height = whole[0];
  return value;
}

op_value densify(const op_value& value) {
  if (!value.is_rows())
    return value;
  auto dims = value.dims;
  dims[0] = value.height;
  const auto width = static_cast<std::size_t>(dims.numel(1, dims.rank()));
  op_value dense{.dims = dims,
                 .type = value.type,
                 .elements = std::vector<double>(count_of(dims))};
  for (std::size_t r = 0; r < value.rows.size(); ++r)
    for (std::size_t i = 0; i < width; ++i)
      dense.elements[static_cast<std::size_t>(value.rows[r]) * width + i] +=
        value.elements[r * width + i];
  return dense;
}

op_case with_float_type(op_case c, dtype type) {
  for (auto& [slot, values] : c.inputs)
    for (auto& value : values)
      if (value.type == dtype::float32)
        value.type = type;
  return c;
}

op_case backward_of(const op_case& forward, const op_values& results) {
  TROUPE_ASSERT(forward.gradient.has_value());
  op_case backward{.type = forward.type + "_grad",
                   .inputs = {},
                   .attributes = forward.attributes,
                   .outputs = {},
                   .step = forward.step};
  for (const auto& slot : forward.gradient->kept)
    backward.inputs[slot] = kept_value(forward, results, slot);
  std::uint64_t seed = 1000;
  for (const auto& slot : forward.gradient->results)
    for (const auto& value : results.at(slot)) {
      auto gradient = random_values(value.dims, seed++);
      gradient.type = value.type;
      backward.inputs[slot + "@GRAD"].push_back(std::move(gradient));
    }
  for (const auto& slot : forward.gradient->wanted)
    backward.outputs[slot + "@GRAD"] = forward.inputs.at(slot).size();
  return backward;
}

op_case only_output(op_case c, const std::string& slot) {
  c.outputs = {{slot, c.outputs.at(slot)}};
  return c;
}

} // namespace troupe::test

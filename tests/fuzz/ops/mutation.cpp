// SPDX-License-Identifier: Apache-2.0
#include "fuzz/ops/mutation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

namespace troupe::fuzz {

namespace {

using generator = std::mt19937_64;

// Inputs stay small, so that a mutation takes milliseconds.
constexpr std::int64_t most_elements = 4096;

std::size_t draw(generator& random, std::size_t below) {
  return below == 0 ? 0 : random() % below;
}

bool one_in(generator& random, std::size_t n) {
  return draw(random, n) == 0;
}

template <class Container>
auto& pick(Container& from, generator& random) {
  return *std::next(from.begin(),
                    static_cast<std::ptrdiff_t>(draw(random, from.size())));
}

/// A number that ops trip over, or one near `before`.
std::int64_t odd_integer(std::int64_t before, generator& random) {
  using limits32 = std::numeric_limits<std::int32_t>;
  using limits64 = std::numeric_limits<std::int64_t>;
  constexpr std::array<std::int64_t, 18> odd{0,
                                             1,
                                             -1,
                                             2,
                                             -2,
                                             3,
                                             5,
                                             7,
                                             8,
                                             -8,
                                             64,
                                             limits32::max(),
                                             limits32::min(),
                                             limits64::max(),
                                             limits64::min(),
                                             std::int64_t{1} << 32,
                                             std::int64_t{1} << 40,
                                             -(std::int64_t{1} << 62)};
  switch (draw(random, 4)) {
  case 0: return before == limits64::max() ? before : before + 1;
  case 1: return before == limits64::min() ? before : before - 1;
  default: return odd[draw(random, odd.size())];
  }
}

double odd_number(generator& random) {
  constexpr std::array<double, 12> odd{
    0,     -0.0,  1,        -1,
    0.5,   2,     1e30,     1e-30,
    -1e38, 1e300, HUGE_VAL, std::numeric_limits<double>::quiet_NaN()};
  return odd[draw(random, odd.size())];
}

std::string odd_text(generator& random) {
  const std::array<const char*, 20> odd{"",
                                        "SAME",
                                        "VALID",
                                        "EXPLICIT",
                                        "NCHW",
                                        "NHWC",
                                        "NCDHW",
                                        "avg",
                                        "max",
                                        "SUM",
                                        "LAST",
                                        "relu",
                                        "sigmoid",
                                        "tanh",
                                        "LSTM",
                                        "GRU",
                                        "reflect",
                                        "edge",
                                        "upscale_in_train",
                                        "nonsense"};
  return odd[draw(random, odd.size())];
}

// -- attributes ---------------------------------------------------------------

template <class T>
T odd_element(const T& before, generator& random) {
  if constexpr (std::is_same_v<T, bool>)
    return !before;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(
      odd_integer(static_cast<std::int64_t>(before), random));
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(odd_number(random));
  else if constexpr (std::is_same_v<T, std::string>)
    return odd_text(random);
  else
    return before; // blocks
}

template <class T>
void change_list(std::vector<T>& list, generator& random) {
  const auto at = draw(random, list.size());
  const auto place = list.begin() + static_cast<std::ptrdiff_t>(at);
  switch (draw(random, 6)) {
  case 0:
    if (!list.empty())
      list.erase(place);
    return;
  case 1: list.insert(place, odd_element(T{}, random)); return;
  case 2: // an axis twice
    if (list.size() > 1)
      list[at] = T(list[draw(random, list.size())]);
    return;
  case 3: {
    if (list.empty())
      return;
    const T again = list[at];
    list.push_back(again);
    return;
  }
  default:
    if (!list.empty())
      list[at] = odd_element(T(list[at]), random);
  }
}

/// Lists of 32 bits as lists of 64, which ops read alike.
attribute widened(const attribute& value) {
  if (const auto* one = std::get_if<std::int32_t>(&value))
    return std::int64_t{*one};
  if (const auto* list = std::get_if<std::vector<std::int32_t>>(&value))
    return std::vector<std::int64_t>(list->begin(), list->end());
  return value;
}

attribute other_value(attribute value, generator& random) {
  if (one_in(random, 2))
    value = widened(value);
  std::visit(
    [&]<class T>(T& held) {
      if constexpr (requires { held.push_back(held.front()); }
                    && !std::is_same_v<T, std::string>)
        change_list(held, random);
      else
        held = odd_element(held, random);
    },
    value);
  return value;
}

attribute any_value(generator& random) {
  switch (draw(random, 5)) {
  case 0: return odd_integer(0, random);
  case 1: return static_cast<float>(odd_number(random));
  case 2: return odd_text(random);
  case 3:
    return std::vector<std::int64_t>(draw(random, 10), odd_integer(1, random));
  default: return one_in(random, 2);
  }
}

void change_attribute(graph::op_desc& op, generator& random) {
  if (op.attributes.size() == 0)
    return;
  const auto* entry =
    op.attributes.begin() + draw(random, op.attributes.size());
  const auto name = entry->first;
  const auto value = entry->second;
  switch (draw(random, 12)) {
  case 0: return op.attributes.erase(name);
  case 1: return op.attributes.set(name, any_value(random));
  default: return op.attributes.set(name, other_value(value, random));
  }
}

// -- slots --------------------------------------------------------------------

std::string any_variable(const op_case_file& c, generator& random) {
  const auto& vars = c.program.main().vars;
  if (vars.empty() || one_in(random, 10))
    return "@EMPTY@";
  return pick(vars, random).first;
}

void change_arguments(op_case_file& c, op_slot& slot, generator& random) {
  auto& list = slot.arguments;
  const auto at = draw(random, list.size());
  switch (draw(random, 5)) {
  case 0: list.push_back(any_variable(c, random)); return;
  case 1:
    if (!list.empty())
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
    return;
  case 2: list.clear(); return;
  default:
    if (!list.empty())
      list[at] = any_variable(c, random);
  }
}

void change_slots(op_case_file& c, graph::op_desc& op, generator& random) {
  auto& slots = one_in(random, 2) ? op.inputs : op.outputs;
  if (slots.empty())
    return;
  if (one_in(random, 8)) {
    slots.erase(slots.begin()
                + static_cast<std::ptrdiff_t>(draw(random, slots.size())));
    return;
  }
  change_arguments(c, pick(slots, random), random);
}

/// An output becomes an input's variable: the op writes what it reads.
void write_in_place(op_case_file&, graph::op_desc& op, generator& random) {
  if (op.inputs.empty() || op.outputs.empty())
    return;
  const auto& from = pick(op.inputs, random).arguments;
  auto& to = pick(op.outputs, random).arguments;
  if (!from.empty() && !to.empty())
    pick(to, random) = from[draw(random, from.size())];
}

// -- values -------------------------------------------------------------------

bool is_small(const std::vector<std::int64_t>& dims) {
  std::int64_t count = 1;
  for (const auto extent : dims)
    if (extent < 0
        || __builtin_mul_overflow(count, std::max<std::int64_t>(extent, 1),
                                  &count)
        || count > most_elements)
      return false;
  return true;
}

void change_shape(case_value& value, generator& random) {
  auto dims = value.dims;
  const auto at = draw(random, dims.size());
  const auto place = dims.begin() + static_cast<std::ptrdiff_t>(at);
  switch (draw(random, 6)) {
  case 0: dims.insert(place, static_cast<std::int64_t>(draw(random, 3))); break;
  case 1:
    if (!dims.empty())
      dims.erase(place);
    break;
  case 2:
    if (!dims.empty())
      std::swap(dims.front(), dims[at]);
    break;
  case 3: dims = {static_cast<std::int64_t>(value.elements.size())}; break;
  default:
    if (!dims.empty()) {
      constexpr std::array<std::int64_t, 6> extents{0, 1, 2, 3, 17, 64};
      dims[at] =
        one_in(random, 2)
          ? extents[draw(random, extents.size())]
          : std::max<std::int64_t>(
            0, dims[at] + 1 - 2 * static_cast<std::int64_t>(draw(random, 2)));
    }
  }
  if (is_small(dims))
    value.dims = std::move(dims);
}

void change_elements(case_value& value, generator& random) {
  if (value.elements.empty())
    return;
  const bool whole = value.type == dtype::int32 || value.type == dtype::int64;
  for (auto times = draw(random, 4) + 1; times > 0; --times) {
    auto& element = pick(value.elements, random);
    element =
      whole ? static_cast<double>(odd_integer(
        static_cast<std::int64_t>(std::clamp(element, -1e18, 1e18)), random))
            : odd_number(random);
  }
}

void change_levels(case_value& value, generator& random) {
  const auto rows =
    value.dims.empty() ? 1 : std::max<std::int64_t>(value.dims[0], 0);
  if (!value.levels.empty() && one_in(random, 3)) {
    value.levels.pop_back();
    return;
  }
  std::vector<std::uint64_t> offsets{0};
  for (auto cuts = draw(random, 5); cuts > 0; --cuts)
    offsets.push_back(draw(random, static_cast<std::size_t>(rows) + 1));
  offsets.push_back(static_cast<std::uint64_t>(rows));
  std::ranges::sort(offsets);
  value.levels = {offsets};
}

void change_rows(case_value& value, generator& random) {
  if (!value.is_rows() || one_in(random, 4)) {
    value.height = std::max<std::int64_t>(
      0, std::min<std::int64_t>(odd_integer(value.height, random),
                                std::int64_t{1} << 20));
    return;
  }
  if (one_in(random, 3))
    change_list(value.rows, random);
  else if (!value.rows.empty())
    pick(value.rows, random) = odd_integer(value.height, random);
}

void change_type(case_value& value, generator& random) {
  constexpr std::array types{dtype::float32, dtype::float64, dtype::int32,
                             dtype::int64,   dtype::boolean, dtype::int8,
                             dtype::uint8,   dtype::int16,   dtype::float16};
  value.type = types[draw(random, types.size())];
}

void change_value(op_case_file& c, generator& random) {
  if (c.inputs.empty())
    return;
  auto& [name, value] = pick(c.inputs, random);
  switch (draw(random, 12)) {
  case 0: c.inputs.erase(std::string{name}); return;
  case 1: return change_type(value, random);
  case 2: return change_levels(value, random);
  case 3: return change_rows(value, random);
  case 4:
  case 5:
  case 6:
  case 7: return change_elements(value, random);
  default: return change_shape(value, random);
  }
}

} // namespace

void mutate(op_case_file& c, generator& random) {
  for (auto times = draw(random, 3) + 1; times > 0; --times) {
    auto& block = pick(c.program.blocks, random);
    if (block.ops.empty() || one_in(random, 3)) {
      change_value(c, random);
      continue;
    }
    auto& op = pick(block.ops, random);
    switch (draw(random, 6)) {
    case 0: change_slots(c, op, random); break;
    case 1: write_in_place(c, op, random); break;
    default: change_attribute(op, random);
    }
  }
}

} // namespace troupe::fuzz

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <cstddef>
#include <span>
#include <string_view>

namespace troupe {

/// The arguments at the front that belong to the slot of the first; `all` is
/// not empty. Looks at few of them, since an op of 100,000 arguments asks for
/// each of them in turn.
inline std::span<const op_argument>
first_slot(std::span<const op_argument> all) noexcept {
  const auto slot = all.front().slot;
  const auto belongs = [&](std::size_t i) {
    return i < all.size() && all[i].slot == slot;
  };
  std::size_t last = 0;
  std::size_t step = 1;
  for (; belongs(last + step); step *= 2)
    last += step;
  for (; step > 0; step /= 2)
    if (belongs(last + step))
      last += step;
  return all.first(last + 1);
}

/// The arguments of a slot; none if there is no such slot.
inline std::span<const op_argument>
arguments_in(std::span<const op_argument> all, std::string_view slot) noexcept {
  while (!all.empty()) {
    const auto found = first_slot(all);
    if (found.front().slot == slot)
      return found;
    all = all.subspan(found.size());
  }
  return {};
}

} // namespace troupe

// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/movement/strided_box.hpp>

#include <troupe/kernels/cpu/element_types.hpp>

#include <troupe/base/assert.hpp>

#include <algorithm>
#include <cstring>

namespace troupe::cpu {

namespace {

template <class T>
void copy_run(T* to, std::int64_t to_step, const T* from,
              std::int64_t from_step, std::int64_t n) {
  if (to_step == 1 && from_step == 1)
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
  else if (to_step == 1 && from_step == 0)
    std::fill_n(to, n, *from);
  else
    for (std::int64_t i = 0; i < n; ++i)
      to[i * to_step] = from[i * from_step];
}

template <class T>
void add_run(T* to, std::int64_t to_step, const T* from, std::int64_t from_step,
             std::int64_t n) {
  using elementwise::add;
  if (to_step == 1 && from_step == 1)
    return add_into(to, from, n);
  if (to_step != 0) {
    for (std::int64_t i = 0; i < n; ++i)
      to[i * to_step] = add::apply(to[i * to_step], from[i * from_step]);
    return;
  }
  T total{};
  for (std::int64_t i = 0; i < n; ++i)
    total = add::apply(total, from[i * from_step]);
  *to = add::apply(*to, total);
}

} // namespace

void strided_box::add_axis(std::int64_t extent, std::int64_t to_step,
                           std::int64_t from_step) {
  empty_ = empty_ || extent == 0;
  if (extent == 1)
    return;
  if (rank_ > 0) {
    axis& last = axes_[rank_ - 1];
    if (last.to_step == to_step * extent
        && last.from_step == from_step * extent) {
      last = {last.extent * extent, to_step, from_step};
      return;
    }
  }
  TROUPE_ASSERT(rank_ < axes_.size());
  axes_[rank_++] = {extent, to_step, from_step};
}

template <class T, class Run>
void strided_box::walk(std::size_t depth, T* to, const T* from, Run run) const {
  const axis& a = axes_[depth];
  if (depth + 1 >= rank_)
    return run(to, a.to_step, from, a.from_step, a.extent);
  for (std::int64_t i = 0; i < a.extent; ++i)
    walk(depth + 1, to + i * a.to_step, from + i * a.from_step, run);
}

void strided_box::copy(std::byte* to, const std::byte* from, dtype type) const {
  if (empty_)
    return;
  with_width(type, [&](auto zero) {
    using element = decltype(zero);
    walk(0, reinterpret_cast<element*>(to),
         reinterpret_cast<const element*>(from), copy_run<element>);
  });
}

void strided_box::add(std::byte* to, const std::byte* from, dtype type) const {
  if (empty_)
    return;
  with_number(type, "gradient", [&](auto zero) {
    using element = decltype(zero);
    walk(0, reinterpret_cast<element*>(to),
         reinterpret_cast<const element*>(from), add_run<element>);
  });
}

} // namespace troupe::cpu

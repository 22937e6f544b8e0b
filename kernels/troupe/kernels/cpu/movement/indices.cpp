// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/movement/indices.hpp>

#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/element_types.hpp>

#include <cstring>

namespace troupe::cpu {

namespace {

// Calls `act(offset of the run, offset among the runs, size)`, all in bytes.
template <class Act>
void for_each_run(const named_runs& runs, dtype type, Act act) {
  const auto bytes = static_cast<std::size_t>(runs.size) * size_of(type);
  std::size_t at = 0;
  for (const std::int64_t start : runs.starts) {
    act(static_cast<std::size_t>(start) * size_of(type), at, bytes);
    at += bytes;
  }
}

} // namespace

std::vector<std::int64_t> checked_indices(const kernel_context& ctx,
                                          std::string_view slot,
                                          std::int64_t extent) {
  auto all = integers(ctx.input(slot), slot);
  for (const std::int64_t index : all)
    if (index < 0 || index >= extent)
      throw_index(ctx, slot, index, extent);
  return all;
}

named_runs find_runs(const kernel_context& ctx, std::string_view slot,
                     const shape& whole) {
  const tensor index = ctx.input(slot);
  const shape& dims = index.dims();
  const std::int64_t depth = dims.rank() == 0 ? 1 : dims.dim(-1);
  if (depth > static_cast<std::int64_t>(whole.rank()))
    throw_shapes(slot, dims, "X", whole, "names more axes than there are");
  const auto all = integers(index, slot);
  const auto axes = static_cast<std::size_t>(depth);
  named_runs runs;
  runs.size = whole.numel(axes, whole.rank());
  runs.starts.resize(static_cast<std::size_t>(
    dims.rank() == 0 ? 1 : dims.numel(0, dims.rank() - 1)));
  auto next = all.begin();
  for (auto& start : runs.starts) {
    for (std::size_t axis = 0; axis < axes; ++axis, ++next) {
      if (*next < 0 || *next >= whole[axis])
        throw_index(ctx, slot, *next, whole[axis]);
      start = start * whole[axis] + *next;
    }
    start *= runs.size;
  }
  std::vector<std::int64_t> out(dims.begin(), dims.end());
  if (!out.empty())
    out.pop_back();
  out.insert(out.end(), whole.begin() + axes, whole.end());
  runs.dims = shape(out);
  return runs;
}

named_runs find_rows(const kernel_context& ctx, std::string_view slot,
                     const shape& whole) {
  if (whole.rank() == 0)
    throw_shape("X", whole, "has no rows");
  named_runs runs;
  runs.starts = checked_indices(ctx, slot, whole[0]);
  runs.size = whole.numel(1, whole.rank());
  std::vector<std::int64_t> out(whole.begin() + 1, whole.end());
  if (ctx.input(slot).dims().rank() > 0)
    out.insert(out.begin(), static_cast<std::int64_t>(runs.starts.size()));
  for (auto& start : runs.starts)
    start *= runs.size;
  runs.dims = shape(out);
  return runs;
}

void gather_runs(const named_runs& runs, tensor& to, const tensor& from) {
  for_each_run(runs, from.type(), [&](auto start, auto at, auto bytes) {
    std::memcpy(to.raw() + at, from.raw() + start, bytes);
  });
}

void scatter_runs(const named_runs& runs, tensor& to, const tensor& from) {
  for_each_run(runs, from.type(), [&](auto start, auto at, auto bytes) {
    std::memcpy(to.raw() + start, from.raw() + at, bytes);
  });
}

void add_runs(const named_runs& runs, tensor& to, const tensor& from) {
  with_number(from.type(), "Updates", [&](auto zero) {
    using element = decltype(zero);
    const element* next = from.data<element>();
    for (const std::int64_t start : runs.starts) {
      add_into(to.data<element>() + start, next, runs.size);
      next += runs.size;
    }
  });
}

void clear_runs(const named_runs& runs, tensor& to) {
  for_each_run(runs, to.type(), [&](auto start, auto, auto bytes) {
    std::memset(to.raw() + start, 0, bytes);
  });
}

} // namespace troupe::cpu

// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <algorithm>
#include <cstring>

namespace troupe::cpu {

namespace {

// Copies elements [first, last) of a row and sets the others to zero.
void copy_between(std::byte* out, const std::byte* x, std::int64_t first,
                  std::int64_t last, std::int64_t columns, std::size_t width) {
  const auto from = static_cast<std::size_t>(first) * width;
  const auto to = static_cast<std::size_t>(last) * width;
  const auto end = static_cast<std::size_t>(columns) * width;
  std::memset(out, 0, from);
  std::memcpy(out + from, x + from, to - from);
  std::memset(out + to, 0, end - to);
}

// Keeps the lower or upper triangle of each matrix. `diagonal` 0 is the main
// one, positive ones are above it.
void keep_triangle(kernel_context& ctx, std::string_view from,
                   std::string_view to) {
  const tensor x = ctx.input(from);
  const shape& dims = x.dims();
  if (dims.rank() < 2)
    throw_shape(from, dims, "expected matrices");
  const bool lower = ctx.attributes().get_bool("lower", true);
  const std::int64_t rows = dims[dims.rank() - 2];
  const std::int64_t columns = dims[dims.rank() - 1];
  const std::int64_t diagonal = std::clamp(
    ctx.attributes().get_int("diagonal", 0), -rows, columns); // all or nothing
  const std::size_t width = size_of(x.type());
  tensor out = ctx.output(to, dims, x.type());
  if (x.numel() == 0)
    return;
  for (std::int64_t i = 0; i < x.numel() / columns; ++i) {
    const auto offset = static_cast<std::size_t>(i * columns) * width;
    const std::int64_t at = i % rows + diagonal; // the row's diagonal element
    const std::int64_t first =
      lower ? 0 : std::clamp<std::int64_t>(at, 0, columns);
    const std::int64_t last =
      lower ? std::clamp<std::int64_t>(at + 1, 0, columns) : columns;
    copy_between(out.raw() + offset, x.raw() + offset, first, last, columns,
                 width);
  }
}

} // namespace

void run_tril_triu(kernel_context& ctx) {
  keep_triangle(ctx, "X", "Out");
}

void run_tril_triu_grad(kernel_context& ctx) {
  keep_triangle(ctx, "Out@GRAD", "X@GRAD");
}

} // namespace troupe::cpu

// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/element_types.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/movement/indices.hpp>

#include <cstring>
#include <vector>

namespace troupe::cpu {

namespace {

// Element (o, i, n) of Out is element (o, indices[i], n) of X.
struct selection {
  axis_view view; // of X
  std::vector<std::int64_t> indices;
  shape out;
};

// An index of shape [] removes its axis; [n] and [n, 1] are lists.
selection select(const kernel_context& ctx, const shape& x, std::int64_t axis) {
  const std::size_t at = normal_axis(axis, x.rank(), "X");
  const shape index = ctx.input("Index").dims();
  if (index.rank() > 2 || (index.rank() == 2 && index[1] != 1))
    throw_shape("Index", index, "expected [n] or [n, 1]");
  std::vector<std::int64_t> out(x.begin(), x.end());
  if (index.rank() == 0)
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(at));
  else
    out[at] = index[0];
  return {{x, at}, checked_indices(ctx, "Index", x[at]), shape(out)};
}

selection gather_of(const kernel_context& ctx, const shape& x) {
  return select(ctx, x, integer_of(ctx, "Axis", "axis", 0));
}

selection index_select_of(const kernel_context& ctx, const shape& x) {
  return select(ctx, x, ctx.attributes().get_int("dim", 0));
}

// Calls `act(offset in X, offset in Out)` for each run of `inner` elements.
template <class Act>
void for_each_run(const selection& s, Act act) {
  std::int64_t at = 0;
  for (std::int64_t o = 0; o < s.view.outer; ++o)
    for (const std::int64_t index : s.indices) {
      act((o * s.view.extent + index) * s.view.inner, at);
      at += s.view.inner;
    }
}

using selection_of = selection (*)(const kernel_context&, const shape&);

template <class T>
void copy_selected(const selection& s, tensor& out, const tensor& x) {
  const T* from = reinterpret_cast<const T*>(x.raw());
  T* to = reinterpret_cast<T*>(out.raw());
  if (s.view.inner == 1)
    return for_each_run(s, [&](auto start, auto at) { to[at] = from[start]; });
  const auto bytes = static_cast<std::size_t>(s.view.inner) * sizeof(T);
  for_each_run(
    s, [&](auto start, auto at) { std::memcpy(to + at, from + start, bytes); });
}

void gather(kernel_context& ctx, selection_of how) {
  const tensor x = ctx.input("X");
  const selection s = how(ctx, x.dims());
  tensor out = ctx.output("Out", s.out, x.type());
  with_width(x.type(),
             [&](auto zero) { copy_selected<decltype(zero)>(s, out, x); });
}

// If an element is taken several times, its gradients are added up.
void gather_gradient(kernel_context& ctx, selection_of how) {
  const shape x = ctx.input("X").dims();
  const tensor dout = ctx.input("Out@GRAD");
  const selection s = how(ctx, x);
  require_shape("Out@GRAD", dout.dims(), s.out);
  tensor dx = ctx.output("X@GRAD", x, dout.type());
  std::memset(dx.raw(), 0, dx.bytes());
  with_number(dout.type(), "Out@GRAD", [&](auto zero) {
    using element = decltype(zero);
    for_each_run(s, [&](auto start, auto at) {
      add_into(dx.data<element>() + start, dout.data<element>() + at,
               s.view.inner);
    });
  });
}

} // namespace

void run_gather(kernel_context& ctx) {
  gather(ctx, gather_of);
}

void run_gather_grad(kernel_context& ctx) {
  gather_gradient(ctx, gather_of);
}

void run_index_select(kernel_context& ctx) {
  gather(ctx, index_select_of);
}

void run_index_select_grad(kernel_context& ctx) {
  gather_gradient(ctx, index_select_of);
}

void run_gather_nd(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const named_runs runs = find_runs(ctx, "Index", x.dims());
  tensor out = ctx.output("Out", runs.dims, x.type());
  gather_runs(runs, out, x);
}

void run_gather_nd_grad(kernel_context& ctx) {
  const shape x = ctx.input("X").dims();
  const tensor dout = ctx.input("Out@GRAD");
  const named_runs runs = find_runs(ctx, "Index", x);
  require_shape("Out@GRAD", dout.dims(), runs.dims);
  tensor dx = ctx.output("X@GRAD", x, dout.type());
  std::memset(dx.raw(), 0, dx.bytes());
  add_runs(runs, dx, dout);
}

} // namespace troupe::cpu

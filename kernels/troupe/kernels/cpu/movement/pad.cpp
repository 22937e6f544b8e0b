// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/element_types.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/movement/slice_box.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

enum class pad_mode { constant, reflect, replicate, circular };

constexpr std::int64_t outside = -1;

// The position in X for position `i` before its start (i < 0) or after its end.
std::int64_t source_of(std::int64_t i, std::int64_t n, pad_mode mode) {
  if (i >= 0 && i < n)
    return i;
  switch (mode) {
  case pad_mode::constant: return outside;
  case pad_mode::reflect: return i < 0 ? -i : 2 * (n - 1) - i;
  case pad_mode::replicate: return i < 0 ? 0 : n - 1;
  case pad_mode::circular: return (i % n + n) % n;
  }
  return outside;
}

// One axis: X's extent and the paddings around it in Out.
struct padded_axis {
  std::int64_t extent = 1;
  std::int64_t before = 0;
  std::int64_t after = 0;
  pad_mode mode = pad_mode::constant;

  std::int64_t size() const { return before + extent + after; }
  // The position in X for position `i` of Out, or `outside`.
  std::int64_t source(std::int64_t i) const {
    return source_of(i - before, extent, mode);
  }
};

struct padding {
  std::vector<padded_axis> axes;
  double value = 0;

  shape out() const {
    std::vector<std::int64_t> dims;
    for (const auto& a : axes)
      dims.push_back(a.size());
    return shape(dims);
  }
};

// Makes no list of positions: a file may ask for more than memory holds.
padded_axis pad_axis(std::int64_t n, std::int64_t before, std::int64_t after,
                     pad_mode mode) {
  constexpr auto most = std::int64_t{1} << 60;
  if (before < 0 || after < 0 || before > most || after > most
      || (mode == pad_mode::reflect && std::max(before, after) >= n)
      || (mode != pad_mode::constant && n == 0 && before + after > 0))
    throw error(errc::shape_mismatch, "paddings " + std::to_string(before)
                                        + " and " + std::to_string(after)
                                        + " of an axis of " + std::to_string(n)
                                        + " elements");
  return {n, before, after, mode};
}

pad_mode mode_of(const attribute_map& attributes) {
  constexpr std::pair<const char*, pad_mode> modes[] = {
    {"constant", pad_mode::constant},   {"reflect", pad_mode::reflect},
    {"replicate", pad_mode::replicate}, {"edge", pad_mode::replicate},
    {"circular", pad_mode::circular},
  };
  const auto name = attributes.get_string("mode", "constant");
  for (const auto& [known, mode] : modes)
    if (name == known)
      return mode;
  throw error(errc::invalid_argument, "attribute mode is " + name);
}

// Padding from pairs (before, after) for each axis of X, outermost first.
padding padding_of(const shape& x, const std::vector<std::int64_t>& pairs,
                   pad_mode mode, double value) {
  if (pairs.size() != 2 * x.rank())
    throw_shape(
      "X", x, "does not go with " + std::to_string(pairs.size()) + " paddings");
  padding p;
  p.value = value;
  for (std::size_t i = 0; i < x.rank(); ++i)
    p.axes.push_back(pad_axis(x[i], pairs[2 * i], pairs[2 * i + 1], mode));
  return p;
}

padding pad_of(const kernel_context& ctx, const shape& x) {
  const auto& attributes = ctx.attributes();
  return padding_of(x, attributes.get_ints("paddings", {}), pad_mode::constant,
                    attributes.get_float("pad_value", 0.0f));
}

// [left, right, top, bottom, front, back]
padding pad3d_of(const kernel_context& ctx, const shape& x) {
  auto pairs = integers_of(ctx, "", "Paddings", "paddings");
  if (pairs.size() != 6)
    throw error(errc::invalid_argument,
                "pad3d needs 6 paddings, not " + std::to_string(pairs.size()));
  std::vector<std::int64_t> all{pairs[4], pairs[5], pairs[2],
                                pairs[3], pairs[0], pairs[1]};
  const auto& attributes = ctx.attributes();
  const bool channels_last =
    attributes.get_string("data_format", "NCDHW") == "NDHWC";
  all.insert(channels_last ? all.end() : all.begin(), 2, 0); // channels
  all.insert(all.begin(), 2, 0);                             // samples
  return padding_of(x, all, mode_of(attributes),
                    attributes.get_float("value", 0.0f));
}

template <class T>
class padder {
public:
  explicit padder(const padding& p) : p_(p), value_(number_as<T>(p.value)) {}

  // out[i] = x[source(i)]
  void forward(std::size_t axis, std::int64_t size, T* out, const T* x) const {
    const padded_axis& a = p_.axes[axis];
    if (axis + 1 == p_.axes.size())
      return forward_row(a, out, x);
    const std::int64_t x_step = size / std::max<std::int64_t>(a.extent, 1);
    const std::int64_t out_step = out_size(axis + 1);
    for (std::int64_t i = 0; i < a.size(); ++i)
      if (const auto source = a.source(i); source == outside)
        std::fill_n(out + i * out_step, out_step, value_);
      else
        forward(axis + 1, x_step, out + i * out_step, x + source * x_step);
  }

  // dx[source(i)] += dout[i]
  void backward(std::size_t axis, std::int64_t size, T* dx,
                const T* dout) const {
    const padded_axis& a = p_.axes[axis];
    if (axis + 1 == p_.axes.size())
      return backward_row(a, dx, dout);
    const std::int64_t x_step = size / std::max<std::int64_t>(a.extent, 1);
    const std::int64_t out_step = out_size(axis + 1);
    for (std::int64_t i = 0; i < a.size(); ++i)
      if (const auto source = a.source(i); source != outside)
        backward(axis + 1, x_step, dx + source * x_step, dout + i * out_step);
  }

private:
  std::int64_t out_size(std::size_t axis) const {
    std::int64_t size = 1;
    for (; axis < p_.axes.size(); ++axis)
      size *= p_.axes[axis].size();
    return size;
  }

  // Visits the positions around the middle, which is a copy of X.
  template <class Edge>
  static void edges(const padded_axis& a, Edge edge) {
    for (std::int64_t i = 0; i < a.before; ++i)
      edge(i, a.source(i));
    for (std::int64_t i = a.before + a.extent; i < a.size(); ++i)
      edge(i, a.source(i));
  }

  void forward_row(const padded_axis& a, T* out, const T* x) const {
    edges(a, [&](std::int64_t i, std::int64_t source) {
      out[i] = source == outside ? value_ : x[source];
    });
    std::copy_n(x, a.extent, out + a.before);
  }

  void backward_row(const padded_axis& a, T* dx, const T* dout) const {
    edges(a, [&](std::int64_t i, std::int64_t source) {
      if (source != outside)
        dx[source] += dout[i];
    });
    add_into(dx, dout + a.before, a.extent);
  }

  const padding& p_;
  T value_;
};

using padding_rule = padding (*)(const kernel_context&, const shape&);

void pad(kernel_context& ctx, padding_rule rule) {
  const tensor x = ctx.input("X");
  const padding p = rule(ctx, x.dims());
  tensor out = ctx.output("Out", p.out(), x.type());
  if (out.numel() == 0)
    return; // else the extents may be huge
  if (p.axes.empty())
    return std::memcpy(out.raw(), x.raw(), x.bytes()), void();
  with_number(x.type(), "X", [&](auto zero) {
    using element = decltype(zero);
    padder<element>(p).forward(0, x.numel(), out.data<element>(),
                               x.data<element>());
  });
}

void pad_gradient(kernel_context& ctx, padding_rule rule) {
  const tensor dout = ctx.input("Out@GRAD");
  const shape dims = ctx.input("X").dims();
  const padding p = rule(ctx, dims);
  require_shape("Out@GRAD", dout.dims(), p.out());
  tensor dx = ctx.output("X@GRAD", dims, dout.type());
  std::memset(dx.raw(), 0, dx.bytes());
  if (dout.numel() == 0)
    return;
  with_floating(dout.type(), "Out@GRAD", [&](auto zero) {
    using element = decltype(zero);
    padder<element>(p).backward(0, dx.numel(), dx.data<element>(),
                                dout.data<element>());
  });
}

} // namespace

void run_pad(kernel_context& ctx) {
  pad(ctx, pad_of);
}

void run_pad3d(kernel_context& ctx) {
  pad(ctx, pad3d_of);
}

// The op has no input X: its shape is that of Out@GRAD without the paddings.
void run_pad_grad(kernel_context& ctx) {
  const auto pairs = ctx.attributes().get_ints("paddings", {});
  const tensor dout = ctx.input("Out@GRAD");
  if (pairs.size() != 2 * dout.dims().rank())
    throw_shape("Out@GRAD", dout.dims(),
                "does not go with " + std::to_string(pairs.size())
                  + " paddings");
  if (std::ranges::any_of(pairs, [](std::int64_t n) { return n < 0; }))
    throw_shape("Out@GRAD", dout.dims(), "has negative paddings");
  slice_box middle(dout.dims());
  for (std::size_t i = 0; i < dout.dims().rank(); ++i)
    middle.cut(i, pairs[2 * i], dout.dims()[i] - pairs[2 * i + 1], 1);
  tensor dx = ctx.output("X@GRAD", middle.dims, dout.type());
  middle.copy_to(dx, dout);
}

void run_pad3d_grad(kernel_context& ctx) {
  pad_gradient(ctx, pad3d_of);
}

} // namespace troupe::cpu

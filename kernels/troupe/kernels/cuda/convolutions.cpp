// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/arguments.hpp>
#include <troupe/kernels/cuda/factories.hpp>
#include <troupe/kernels/cuda/queue_parts.hpp>
#include <troupe/kernels/plans/window.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace troupe::cuda {

namespace {

/// The most elements of unfolded images at a time: 512 MiB, as for the
/// workspace of Paddle's kernel, or what the op's attribute says.
std::int64_t most_unfolded(const attribute_map& attributes) {
  constexpr std::int64_t most = 1 << 20; // a TiB
  const auto mebibytes = attributes.get_int("workspace_size_MB", 512);
  return std::clamp<std::int64_t>(mebibytes, 1, most) * ((1 << 20) / 4);
}

sliding sliding_of(const window_axis& a) {
  return {a.length, a.positions(), a.extent, a.stride, a.dilation, a.before};
}

/// Input [N, C, H, W], Filter [O, C / groups, KH, KW], Output [N, O, ...].
struct convolution {
  shape in;
  shape filter;
  shape out;
  std::int64_t groups = 1;
  sliding rows{};
  sliding columns{};
  std::int64_t space = 0; ///< for unfolded images, in elements

  std::int64_t images() const { return in[0]; }
  std::int64_t image_size() const { return in.numel(1, 4); }
  std::int64_t result_size() const { return out.numel(1, 4); }
  std::int64_t positions() const { return out.numel(2, 4); }
  /// Rows of unfolded images.
  std::int64_t unfolded_rows() const { return groups * group_rows(); }
  std::int64_t group_rows() const { return filter.numel(1, 4); }
  std::int64_t group_results() const { return filter[0] / groups; }
  std::int64_t images_at_once() const {
    const auto each = unfolded_rows() * positions();
    return std::clamp<std::int64_t>(space / each, 1, images());
  }
  /// True if unfolded images are the images.
  bool is_pointwise() const {
    const auto covers_itself = [](const sliding& s) {
      return s.extent == 1 && s.stride == 1 && s.positions == s.length;
    };
    return covers_itself(rows) && covers_itself(columns);
  }
  /// Unfolded images, one after the other.
  unfolding by_image(std::int64_t count) const {
    return {count,      in[1], rows, columns, unfolded_rows() * positions(),
            positions()};
  }
  /// Unfolded images side by side: rows go through all of them.
  unfolding by_row(std::int64_t count) const {
    return {count, in[1], rows, columns, positions(), count * positions()};
  }
};

class conv_base : public kernel {
public:
  conv_base(const attribute_map& attributes, const char* op_type) {
    if (has_channels_last(attributes, "data_format"))
      throw error(errc::unsupported_op,
                  std::string(op_type)
                    + " with data_format NHWC has no kernel for CUDA devices",
                  {.op_type = op_type});
  }

protected:
  static convolution problem(const kernel_context& ctx, const shape& in,
                             const shape& filter) {
    require_rank("Input", in, 4);
    require_rank("Filter", filter, 4);
    const auto groups = ctx.attributes().get_int("groups", 1);
    if (groups < 1 || groups > in[1] || in[1] != filter[1] * groups
        || filter[0] % groups != 0)
      throw_shapes("Input", in, "Filter", filter,
                   "do not go together with groups " + std::to_string(groups));
    if (filter.numel() == 0)
      throw_shape("Filter", filter, "is empty");
    const auto axes =
      read_window(ctx.attributes(), {in[2], in[3]}, {filter[2], filter[3]});
    return {in,
            filter,
            {in[0], filter[0], axes[0].positions(), axes[1].positions()},
            groups,
            sliding_of(axes[0]),
            sliding_of(axes[1]),
            most_unfolded(ctx.attributes())};
  }

  /// Calls `use(first, count)` for the images that are unfolded at a time.
  template <class Use>
  static void for_each_chunk(const convolution& c, Use use) {
    const auto most = c.images_at_once();
    for (std::int64_t first = 0; first < c.images(); first += most)
      use(first, std::min(most, c.images() - first));
  }

  /// A product for each group of each image, `p` being that of the first. One
  /// call computes those of one group, or of one image, whichever are more.
  static void multiply_all(cuda_stream& queue, const convolution& c,
                           std::int64_t images, matrix_product p,
                           const std::array<std::int64_t, 3>& image_step,
                           const std::array<std::int64_t, 3>& group_step) {
    const bool by_group = c.groups <= images;
    const auto& inner = by_group ? image_step : group_step;
    const auto& outer = by_group ? group_step : image_step;
    p.count = by_group ? images : c.groups;
    p.a_step = inner[0];
    p.b_step = inner[1];
    p.c_step = inner[2];
    for (std::int64_t i = 0; i < (by_group ? c.groups : images); ++i) {
      queue.multiply(p);
      p.a += outer[0];
      p.b += outer[1];
      p.c += outer[2];
    }
  }

  /// Unfolds images as `by` says.
  static void run_unfold(cuda_stream& queue, const float* x, float* to,
                         const convolution& c, const unfolding& by) {
    const auto count = by.images * by.channels * c.positions();
    queue.run_for_each<unfold>(count, {x, to, count, by});
  }
};

class conv_kernel final : public conv_base {
public:
  explicit conv_kernel(const attribute_map& attributes)
    : conv_base(attributes, "conv2d") {}

  void run(kernel_context& ctx) override {
    const auto x = float_input(ctx, "Input"), w = float_input(ctx, "Filter");
    const auto c = problem(ctx, x.dims(), w.dims());
    auto out = float_output(ctx, "Output", c.out);
    if (out.numel() == 0)
      return;
    auto& queue = stream_of(ctx.queue());
    auto space =
      c.is_pointwise()
        ? tensor{}
        : ctx.scratch(c.images_at_once() * c.unfolded_rows() * c.positions());
    for_each_chunk(c, [&](std::int64_t first, std::int64_t images) {
      const auto* unfolded = x.data<float>() + first * c.image_size();
      if (space) {
        run_unfold(queue, unfolded, space.data<float>(), c, c.by_image(images));
        unfolded = space.data<float>();
      }
      multiply(queue, c, images, w.data<float>(), unfolded,
               out.data<float>() + first * c.result_size());
    });
    if (ctx.has_input("Bias"))
      add_bias(ctx, out);
  }

private:
  static void multiply(cuda_stream& queue, const convolution& c,
                       std::int64_t images, const float* filter,
                       const float* unfolded, float* out) {
    const auto m = c.group_results(), k = c.group_rows(), n = c.positions();
    multiply_all(queue, c, images,
                 {.m = m, .n = n, .k = k, .a = filter, .b = unfolded, .c = out},
                 {0, c.unfolded_rows() * n, c.result_size()},
                 {m * k, k * n, m * n});
  }

  static void add_bias(kernel_context& ctx, tensor& out) {
    const auto bias = float_input(ctx, "Bias");
    if (bias.numel() != out.dims()[1])
      throw_shapes("Bias", bias.dims(), "Output", out.dims(),
                   "expected one value per channel");
    const auto plan = plan_broadcast(out.dims(), {bias.numel()}, 1);
    auto* const sums = out.data<float>();
    stream_of(ctx.queue())
      .run_for_each<add_repeated<float>>(
        out.numel(),
        {sums, bias.data<float>(), sums, out.numel(), 1, pairing_of(plan)});
  }
};

class conv_grad_kernel final : public conv_base {
public:
  explicit conv_grad_kernel(const attribute_map& attributes)
    : conv_base(attributes, "conv2d_grad") {}

  void run(kernel_context& ctx) override {
    const auto x = float_input(ctx, "Input"), w = float_input(ctx, "Filter");
    const auto dout = float_input(ctx, "Output@GRAD");
    const auto c = problem(ctx, x.dims(), w.dims());
    require_shape("Output@GRAD", dout.dims(), c.out);
    // X's gradient may be written to X's memory, so it comes last.
    if (ctx.has_output("Filter@GRAD"))
      filter_gradient(ctx, c, x, dout);
    if (ctx.has_output("Input@GRAD"))
      input_gradient(ctx, c, w, dout);
  }

private:
  static void input_gradient(kernel_context& ctx, const convolution& c,
                             const tensor& w, const tensor& dout) {
    auto dx = float_output(ctx, "Input@GRAD", c.in);
    if (dx.numel() == 0)
      return;
    auto& queue = stream_of(ctx.queue());
    const bool folds = !c.is_pointwise();
    const auto m = c.group_rows(), n = c.positions(), k = c.group_results();
    auto space = folds ? ctx.scratch(c.images_at_once() * c.unfolded_rows() * n)
                       : tensor{};
    for_each_chunk(c, [&](std::int64_t first, std::int64_t images) {
      auto* const to = dx.data<float>() + first * c.image_size();
      auto* const unfolded = folds ? space.data<float>() : to;
      multiply_all(queue, c, images,
                   {.m = m,
                    .n = n,
                    .k = k,
                    .a = w.data<float>(),
                    .b = dout.data<float>() + first * c.result_size(),
                    .c = unfolded,
                    .a_transposed = true},
                   {0, c.result_size(), c.unfolded_rows() * n},
                   {m * k, k * n, m * n});
      if (const auto count = images * c.image_size(); folds)
        queue.run_for_each<fold>(count,
                                 {unfolded, to, count, c.by_image(images)});
    });
  }

  // The images lie side by side, so that one product adds up all of them.
  static void filter_gradient(kernel_context& ctx, const convolution& c,
                              const tensor& x, const tensor& dout) {
    auto dw = float_output(ctx, "Filter@GRAD", c.filter);
    auto& queue = stream_of(ctx.queue());
    if (x.numel() == 0)
      return queue_fill(queue, dw.data<float>(), dw.numel(), 0);
    const auto most = c.images_at_once() * c.positions();
    auto unfolded = ctx.scratch(c.unfolded_rows() * most);
    auto results = ctx.scratch(c.out[1] * most);
    for_each_chunk(c, [&](std::int64_t first, std::int64_t images) {
      run_unfold(queue, x.data<float>() + first * c.image_size(),
                 unfolded.data<float>(), c, c.by_row(images));
      const auto columns = images * c.positions();
      put_side_by_side(queue, c, images,
                       dout.data<float>() + first * c.result_size(),
                       results.data<float>());
      const auto m = c.group_results(), n = c.group_rows();
      queue.multiply({.m = m,
                      .n = n,
                      .k = columns,
                      .a = results.data<float>(),
                      .b = unfolded.data<float>(),
                      .c = dw.data<float>(),
                      .b_transposed = true,
                      .adds = first > 0,
                      .count = c.groups,
                      .a_step = m * columns,
                      .b_step = n * columns,
                      .c_step = m * n});
    });
  }

  /// [images, channels, positions] to [channels, images, positions]
  static void put_side_by_side(cuda_stream& queue, const convolution& c,
                               std::int64_t images, const float* from,
                               float* to) {
    const auto n = c.positions(), channels = c.out[1];
    const pairing axes{
      3, {images, channels, n}, {channels * n, n, 1}, {n, images * n, 1}};
    const auto count = images * channels * n;
    queue.run_for_each<move_elements<std::uint32_t>>(
      count, {reinterpret_cast<const std::uint32_t*>(from),
              reinterpret_cast<std::uint32_t*>(to), count, axes});
  }
};

} // namespace

std::unique_ptr<kernel> make_conv2d(const attribute_map& attributes) {
  return std::make_unique<conv_kernel>(attributes);
}

std::unique_ptr<kernel> make_conv2d_grad(const attribute_map& attributes) {
  return std::make_unique<conv_grad_kernel>(attributes);
}

} // namespace troupe::cuda

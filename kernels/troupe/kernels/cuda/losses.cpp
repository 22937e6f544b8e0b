// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/arguments.hpp>
#include <troupe/kernels/cuda/cuda_stream.hpp>
#include <troupe/kernels/cuda/factories.hpp>
#include <troupe/kernels/shape_only.hpp>

#include <string>

namespace troupe::cuda {

namespace {

/// A tensor seen as rows along its last axis.
struct rows_of {
  std::int64_t rows = 0;
  std::int64_t width = 1;

  rows_of(const kernel_context& ctx, const shape& dims, const char* slot) {
    const auto axis =
      normal_axis(ctx.attributes().get_int("axis", -1), dims.rank(), slot);
    if (axis + 1 != dims.rank())
      throw error(errc::unsupported_op,
                  "on CUDA devices only along the last axis, not axis "
                    + std::to_string(axis) + " of " + to_string(dims));
    width = dims[axis];
    rows = dims.numel(0, axis);
  }
  launch_shape block_per_row() const {
    return {static_cast<std::uint32_t>(width > 0 ? rows : 0), most_threads};
  }
};

tensor label_input(const kernel_context& ctx, std::int64_t rows) {
  auto label = ctx.input("Label");
  require_type("Label", label.type(), dtype::int64);
  if (label.numel() != rows)
    throw_shape("Label", label.dims(),
                "expected one label for each of " + std::to_string(rows)
                  + " rows");
  return label;
}

void refuse_soft_labels(const attribute_map& attributes, const char* op_type) {
  if (attributes.get_bool("soft_label", false))
    throw error(errc::unsupported_op,
                std::string(op_type)
                  + " with soft labels has no kernel for CUDA devices",
                {.op_type = op_type});
}

class cross_entropy_kernel final : public kernel {
public:
  void run(kernel_context& ctx) override {
    const auto logits = float_input(ctx, "Logits");
    const rows_of all(ctx, logits.dims(), "Logits");
    const auto label = label_input(ctx, all.rows);
    auto p = ctx.has_output("Softmax")
               ? float_output(ctx, "Softmax", logits.dims())
               : ctx.scratch(logits.numel());
    auto dims = logits.dims();
    dims[dims.rank() - 1] = 1;
    auto loss = float_output(ctx, "Loss", dims);
    auto& queue = stream_of(ctx.queue());
    queue.run<softmax_rows>(all.block_per_row(),
                            {logits.data<float>(), p.data<float>(),
                             loss.data<float>(), label.data<std::int64_t>(),
                             queue.state().fault, all.rows, all.width,
                             ctx.attributes().get_int("ignore_index", -100)});
  }
};

class cross_entropy_gradient_kernel final : public kernel {
public:
  void run(kernel_context& ctx) override {
    const auto p = float_input(ctx, "Softmax");
    const auto dloss = float_input(ctx, "Loss@GRAD");
    const rows_of all(ctx, p.dims(), "Softmax");
    const auto label = label_input(ctx, all.rows);
    if (dloss.numel() != all.rows)
      throw_shape("Loss@GRAD", dloss.dims(),
                  "expected one for each of " + std::to_string(all.rows)
                    + " rows");
    auto dx = float_output(ctx, "Logits@GRAD", p.dims());
    stream_of(ctx.queue())
      .run_for_each<cross_entropy_gradient>(
        p.numel(), {p.data<float>(), dloss.data<float>(),
                    label.data<std::int64_t>(), dx.data<float>(), all.rows,
                    all.width, ctx.attributes().get_int("ignore_index", -100)});
  }
};

// -- sigmoid_cross_entropy_with_logits ----------------------------------------

class sigmoid_loss_base : public kernel {
public:
  sigmoid_loss_base(const attribute_map& attributes, const char* op_type)
    : ignored_(static_cast<float>(attributes.get_int("ignore_index", -100))) {
    if (attributes.get_bool("normalize", false))
      throw error(errc::unsupported_op,
                  std::string(op_type)
                    + " with normalize has no kernel for CUDA devices",
                  {.op_type = op_type});
  }

protected:
  static tensor labels(const kernel_context& ctx, const tensor& x) {
    auto label = float_input(ctx, "Label");
    if (label.numel() != x.numel())
      throw_shapes("X", x.dims(), "Label", label.dims(),
                   "expected one label per element");
    if (ctx.has_input("pos_weight"))
      throw error(errc::unsupported_op,
                  "pos_weight has no kernel for CUDA devices");
    return label;
  }

  float ignored_;
};

class sigmoid_loss_kernel final : public sigmoid_loss_base {
public:
  explicit sigmoid_loss_kernel(const attribute_map& attributes)
    : sigmoid_loss_base(attributes, "sigmoid_cross_entropy_with_logits") {}

  void run(kernel_context& ctx) override {
    const auto x = float_input(ctx, "X");
    const auto label = labels(ctx, x);
    auto out = float_output(ctx, "Out", x.dims());
    stream_of(ctx.queue())
      .run_for_each<sigmoid_cross_entropy>(
        x.numel(), {x.data<float>(), label.data<float>(), out.data<float>(),
                    x.numel(), ignored_});
  }
};

class sigmoid_loss_grad_kernel final : public sigmoid_loss_base {
public:
  explicit sigmoid_loss_grad_kernel(const attribute_map& attributes)
    : sigmoid_loss_base(attributes, "sigmoid_cross_entropy_with_logits_grad") {}

  void run(kernel_context& ctx) override {
    const auto x = float_input(ctx, "X");
    const auto label = labels(ctx, x);
    const auto dout = float_input(ctx, "Out@GRAD");
    const bool single = dout.numel() == 1;
    if (!single && dout.numel() != x.numel())
      require_shape("Out@GRAD", dout.dims(), x.dims());
    auto dx = float_output(ctx, "X@GRAD", x.dims());
    stream_of(ctx.queue())
      .run_for_each<sigmoid_cross_entropy_gradient>(
        x.numel(), {x.data<float>(), label.data<float>(), dout.data<float>(),
                    dx.data<float>(), x.numel(), single ? 0 : 1, ignored_});
  }
};

float share_of_one(std::int64_t count) {
  return count == 0 ? 0 : static_cast<float>(1.0 / static_cast<double>(count));
}

} // namespace

void run_softmax(kernel_context& ctx) {
  const auto x = float_input(ctx, "X");
  const rows_of all(ctx, x.dims(), "X");
  auto out = float_output(ctx, "Out", x.dims());
  stream_of(ctx.queue())
    .run<softmax_rows>(all.block_per_row(),
                       {x.data<float>(), out.data<float>(), nullptr, nullptr,
                        nullptr, all.rows, all.width, 0});
}

void run_softmax_grad(kernel_context& ctx) {
  const auto out = float_input(ctx, "Out");
  const auto dout = float_input(ctx, "Out@GRAD");
  require_shape("Out@GRAD", dout.dims(), out.dims());
  const rows_of all(ctx, out.dims(), "Out");
  auto dx = float_output(ctx, "X@GRAD", out.dims());
  stream_of(ctx.queue())
    .run<softmax_gradient>(all.block_per_row(),
                           {out.data<float>(), dout.data<float>(),
                            dx.data<float>(), all.rows, all.width});
}

std::unique_ptr<kernel> make_cross_entropy(const attribute_map& attributes) {
  refuse_soft_labels(attributes, "softmax_with_cross_entropy");
  return std::make_unique<cross_entropy_kernel>();
}

std::unique_ptr<kernel>
make_cross_entropy_grad(const attribute_map& attributes) {
  refuse_soft_labels(attributes, "softmax_with_cross_entropy_grad");
  return std::make_unique<cross_entropy_gradient_kernel>();
}

std::unique_ptr<kernel> make_sigmoid_loss(const attribute_map& attributes) {
  return std::make_unique<sigmoid_loss_kernel>(attributes);
}

std::unique_ptr<kernel>
make_sigmoid_loss_grad(const attribute_map& attributes) {
  return std::make_unique<sigmoid_loss_grad_kernel>(attributes);
}

void run_mean(kernel_context& ctx) {
  const auto x = float_input(ctx, "X");
  auto out = float_output(ctx, "Out", shape{});
  stream_of(ctx.queue())
    .run<sum_all>({1, most_threads}, {x.data<float>(), out.data<float>(),
                                      x.numel(), share_of_one(x.numel())});
}

void run_squared_l2_norm(kernel_context& ctx) {
  const auto x = float_input(ctx, "X");
  auto out = float_output(ctx, "Out", {1});
  stream_of(ctx.queue())
    .run<sum_squares>({1, most_threads},
                      {x.data<float>(), out.data<float>(), x.numel()});
}

void run_squared_l2_norm_grad(kernel_context& ctx) {
  const auto x = float_input(ctx, "X"), dout = float_input(ctx, "Out@GRAD");
  if (dout.numel() != 1)
    throw_shape("Out@GRAD", dout.dims(), "expected one element");
  auto dx = float_output(ctx, "X@GRAD", x.dims());
  const auto count = x.numel();
  stream_of(ctx.queue())
    .run_for_each<combine_repeated<twice_product_function>>(
      count, {x.data<float>(), dout.data<float>(), dx.data<float>(), count,
              pairing{1, {count}, {1}, {0}}});
}

void run_mean_grad(kernel_context& ctx) {
  const auto x = input_shape(ctx, "X");
  const auto dout = float_input(ctx, "Out@GRAD");
  if (dout.numel() != 1)
    throw_shape("Out@GRAD", dout.dims(), "expected one element");
  auto dx = float_output(ctx, "X@GRAD", x);
  stream_of(ctx.queue())
    .run_for_each<spread>(x.numel(), {dout.data<float>(), dx.data<float>(),
                                      x.numel(), share_of_one(x.numel())});
}

void run_top_k(kernel_context& ctx) {
  const auto x = float_input(ctx, "X");
  const auto& attributes = ctx.attributes();
  const auto k = attributes.get_int("k", 1);
  const rows_of all(ctx, x.dims(), "X");
  if (k < 1 || k > all.width)
    throw error(errc::out_of_range, "top " + std::to_string(k) + " of "
                                      + std::to_string(all.width));
  auto dims = x.dims();
  dims[dims.rank() - 1] = k;
  auto out = float_output(ctx, "Out", dims);
  auto indices = ctx.output("Indices", dims, dtype::int64);
  stream_of(ctx.queue())
    .run_for_each<best_of_rows>(
      all.rows, {x.data<float>(), out.data<float>(),
                 indices.data<std::int64_t>(), all.rows, all.width, k,
                 attributes.get_bool("largest", true) ? 1.0f : -1.0f});
}

void run_accuracy(kernel_context& ctx) {
  const auto indices = ctx.input("Indices");
  require_type("Indices", indices.type(), dtype::int64);
  require_rank("Indices", indices.dims(), 2);
  const auto rows = indices.dims()[0];
  const auto label = label_input(ctx, rows);
  auto share = float_output(ctx, "Accuracy", shape{});
  auto right = ctx.output("Correct", shape{}, dtype::int32);
  auto total = ctx.output("Total", shape{}, dtype::int32);
  stream_of(ctx.queue())
    .run<count_right>({1, most_threads},
                      {indices.data<std::int64_t>(), label.data<std::int64_t>(),
                       share.data<float>(), right.data<std::int32_t>(),
                       total.data<std::int32_t>(), rows, indices.dims()[1]});
}

} // namespace troupe::cuda

// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/models/builders.hpp>

#include <troupe/graph/layers.hpp>

#include <cmath>
#include <source_location>
#include <utility>

namespace troupe::graph {

namespace {

// Radford et al., "Language models are unsupervised multitask learners", 2019:
// pre-norm blocks of causal self-attention and a GELU network.

constexpr std::int64_t vocabulary = 256;
constexpr std::int32_t tokens = 128; ///< a power of two
constexpr std::int32_t width = 256;
constexpr std::int32_t heads = 8;
constexpr int depth = 4;

constexpr auto mask_name = "causal_mask";

/// Appends ops to the startup program.
struct startup_writer {
  network& net;
  std::source_location at;

  std::string declare(const shape& dims) const {
    var_desc var;
    var.name = net.unique_name(std::string{mask_name} + ".tmp");
    var.dims = dims;
    return net.startup.main().add_var(std::move(var)).name;
  }

  std::string fill(const shape& dims, float value) const {
    auto name = declare(dims);
    net.append_startup(initializer::make_op(initializer::constant{value}, name,
                                            dims, dtype::float32),
                       at);
    return name;
  }

  std::string concat(std::vector<std::string> parts, std::int32_t axis,
                     std::string result) const {
    op_desc op;
    op.type = "concat";
    op.set_input("X", std::move(parts));
    op.set_output("Out", {result});
    op.attributes.set("axis", axis);
    net.append_startup(std::move(op), at);
    return result;
  }
};

/// A constant [tokens, tokens]: 0 on and below the diagonal, and -1e9 above,
/// where a token must not attend. It is built by doubling: mask(2n) has two
/// copies of mask(n) on its diagonal, -1e9 above and 0 below them.
variable_ref causal_mask(network& net) {
  const startup_writer w{net, std::source_location::current()};
  auto mask = net.state(mask_name, {tokens, tokens}, initializer::constant{0});
  auto block = w.fill({1, 1}, 0);
  for (std::int64_t n = 1; n < tokens; n *= 2) {
    auto upper =
      w.concat({block, w.fill({n, n}, -1e9f)}, 1, w.declare({n, 2 * n}));
    auto lower = w.concat({w.fill({n, n}, 0), block}, 1, w.declare({n, 2 * n}));
    block = w.concat({upper, lower}, 0,
                     2 * n < tokens ? w.declare({2 * n, 2 * n}) : mask.name());
  }
  return mask;
}

variable_ref linear(const variable_ref& x, std::int64_t size) {
  return layers::fc(x, size, {.num_flatten_dims = 2});
}

variable_ref norm(const variable_ref& x) {
  return layers::layer_norm(x, {.begin_norm_axis = 2});
}

/// [batch, tokens, width] -> [batch, heads, tokens, width / heads].
variable_ref split_heads(const variable_ref& x) {
  auto h = layers::reshape(x, {0, tokens, heads, width / heads});
  return layers::transpose(h, {0, 2, 1, 3});
}

variable_ref self_attention(const variable_ref& x, const variable_ref& mask) {
  auto qkv = layers::split(linear(x, 3 * width), {.parts = 3, .axis = 2});
  auto scores = layers::matmul(split_heads(qkv[0]), split_heads(qkv[1]),
                               {.transpose_y = true});
  const auto unit = 1 / std::sqrt(static_cast<float>(width / heads));
  scores = layers::add(layers::scale(scores, {.scale = unit}), mask);
  auto mixed = layers::matmul(layers::softmax(scores), split_heads(qkv[2]));
  mixed = layers::transpose(mixed, {0, 2, 1, 3});
  return linear(layers::reshape(mixed, {0, tokens, width}), width);
}

variable_ref block_of(const variable_ref& x, const variable_ref& mask) {
  auto h = layers::add(x, self_attention(norm(x), mask));
  auto inner = layers::gelu(linear(norm(h), 4 * width));
  return layers::add(h, linear(inner, width));
}

} // namespace

model build_gpt(const model_options& options) {
  network net;
  std::vector<model_feed> feeds{
    {"tokens", {-1, tokens}, dtype::int64, vocabulary},
    {"targets", {-1, tokens, 1}, dtype::int64, vocabulary}};
  declare(net, feeds);
  auto mask = causal_mask(net);
  auto positions = net.parameter("positions.w_0", {tokens, width},
                                 initializer::normal{.stddev = 0.02f});
  auto h = layers::embedding(
    input(net, feeds[0]),
    {.rows = vocabulary,
     .width = width,
     .weight = {.init = initializer::normal{.stddev = 0.02f}}});
  h = layers::add(h, positions);
  for (int i = 0; i < depth; ++i)
    h = block_of(h, mask);
  auto logits = layers::fc(norm(h), vocabulary,
                           {.num_flatten_dims = 2, .with_bias = false});
  auto loss = layers::cross_entropy(
    layers::flatten(logits, {.start_axis = 0, .stop_axis = 1}),
    layers::flatten(input(net, feeds[1]), {.start_axis = 0, .stop_axis = 1}));
  return finish(net, {"gpt", 8, loss, {}, feeds}, options,
                minimize_by_momentum);
}

} // namespace troupe::graph

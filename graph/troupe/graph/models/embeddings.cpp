// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/models/builders.hpp>

#include <troupe/graph/dtype_number.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>

#include <source_location>
#include <utility>
#include <vector>

namespace troupe::graph {

namespace {

constexpr std::int32_t slots = 26;
constexpr std::int64_t rows_per_slot = 100'000;

/// The first row of each slot in the table of all slots: int64 [slots].
variable_ref slot_offsets(network& net) {
  var_desc var;
  var.name = "slot_offsets";
  var.type = dtype::int64;
  var.dims = {slots};
  var.persistable = true;
  var.stop_gradient = true;
  net.startup.main().add_var(var);
  net.main.main().add_var(var);
  std::vector<std::int64_t> offsets(slots);
  for (std::size_t i = 0; i < offsets.size(); ++i)
    offsets[i] = static_cast<std::int64_t>(i) * rows_per_slot;
  op_desc op;
  op.type = "assign_value";
  op.set_output("Out", {var.name});
  op.attributes.set("shape", std::vector<std::int32_t>{slots});
  op.attributes.set("dtype", dtype_number(dtype::int64));
  op.attributes.set("int64_values", std::move(offsets));
  net.append_startup(std::move(op), std::source_location::current());
  return {net, var.name};
}

/// Zeros of the shape of x [batch, 1].
variable_ref zeros_like(const variable_ref& x) {
  auto zero = layers::scale(x, {.scale = 0});
  x.net().main.main().find_var(zero.name())->stop_gradient = true;
  return zero;
}

/// Logit [batch, 1] of a click: the sum of a wide (linear) and a deep part. Ids
/// are rows of the table of all slots.
variable_ref widedeep_logit(const variable_ref& ids,
                            const variable_ref& dense) {
  constexpr std::int32_t width = 16;
  const auto rows = slots * rows_per_slot;
  auto e =
    layers::embedding(ids, {.rows = rows, .width = width, .is_sparse = true});
  auto deep = layers::concat({layers::reshape(e, {0, slots * width}), dense},
                             {.axis = 1});
  for (int i = 0; i < 3; ++i)
    deep = layers::fc(deep, 400, {.act = "relu"});
  auto weights =
    layers::embedding(ids, {.rows = rows, .width = 1, .is_sparse = true});
  return layers::sum({layers::fc(deep, 1),
                      layers::reduce_sum(weights, {.axes = {1}}),
                      layers::fc(dense, 1)});
}

} // namespace

// The N-gram net of Bengio et al., "A neural probabilistic language model",
// 2003: predicts the fifth word from the four words before it.
model build_word2vec(const model_options& options) {
  constexpr std::int64_t words = 2000;
  constexpr std::int64_t width = 32;
  network net;
  std::vector<model_feed> feeds;
  for (auto name : {"first", "second", "third", "fourth", "next"})
    feeds.push_back({name, {-1, 1}, dtype::int64, words});
  declare(net, feeds);
  std::vector<variable_ref> context;
  for (std::size_t i = 0; i < 4; ++i) {
    auto e =
      layers::embedding(input(net, feeds[i]), {.rows = words,
                                               .width = width,
                                               .is_sparse = true,
                                               .weight = {.name = "shared_w"}});
    context.push_back(layers::reshape(e, {0, width}));
  }
  auto h =
    layers::fc(layers::concat(context, {.axis = 1}), 256, {.act = "sigmoid"});
  auto loss = layers::cross_entropy(layers::fc(h, words), input(net, feeds[4]));
  return finish(net, {"word2vec", 128, loss, {}, feeds}, options,
                minimize_by_momentum);
}

// Cheng et al., "Wide & deep learning for recommender systems", 2016. All slots
// share one table, and each slot has its own rows. The logistic loss of a logit
// z is computed as softmax cross entropy over (0, z).
model build_widedeep(const model_options& options) {
  network net;
  std::vector<model_feed> feeds{
    {"ids", {-1, slots}, dtype::int64, rows_per_slot},
    {"dense", {-1, 13}, dtype::float32, 0},
    {"click", {-1, 1}, dtype::int64, 2}};
  declare(net, feeds);
  auto ids = layers::add(input(net, feeds[0]), slot_offsets(net));
  auto z = widedeep_logit(ids, input(net, feeds[1]));
  auto scores = layers::concat({zeros_like(z), z}, {.axis = 1});
  auto loss = layers::cross_entropy(scores, input(net, feeds[2]));
  auto accuracy = layers::accuracy(scores, input(net, feeds[2]));
  return finish(net, {"widedeep", 512, loss, accuracy.name(), feeds}, options,
                [](const variable_ref& v) {
                  optimizer::sgd({.learning_rate = 0.01f}).minimize(v);
                });
}

} // namespace troupe::graph

// SPDX-License-Identifier: Apache-2.0
#include <support/caught.hpp>

#include <troupe/graph/layers.hpp>
#include <troupe/graph/network.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/graph/passes/dense_gradients.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace troupe;
using namespace troupe::graph;

TEST_SUITE("graph.passes.dense_gradients") {

namespace {

/// The mean of looked-up rows, with an update.
program embedding(bool sparse) {
  network net;
  const auto ids = net.data("ids", {-1, 1}, dtype::int64);
  const auto rows = layers::embedding(
    ids,
    {.rows = 10, .width = 4, .is_sparse = sparse, .weight = {.name = "w"}});
  optimizer::sgd({.learning_rate = 0.1f}).minimize(layers::mean(rows));
  return net.main;
}

bool holds_rows(const program& p) {
  return std::ranges::any_of(p.main().vars, [](const auto& v) {
    return v.second.kind == var_kind::selected_rows;
  });
}

/// Gives the ops of a type an attribute.
template <class T>
program with(program p, std::string_view type, const char* name, T value) {
  for (auto& op : p.main().ops)
    if (op.type == type)
      op.attributes.set(name, value);
  return p;
}

/// The same, with ops of type sgd as ops of `type`.
program updated_by(const char* type, const char* name, auto value) {
  auto p = embedding(true);
  for (auto& op : p.main().ops)
    if (op.type == "sgd")
      op.type = type;
  return with(p, type, name, value);
}

errc refusal(const program& p) {
  return test::caught([&] { dense_gradients(p); }).code();
}

} // namespace

TEST_CASE("gradients of embeddings become dense") {
  const auto p = embedding(true);
  REQUIRE(makes_row_gradients(p));
  REQUIRE(holds_rows(p));
  const auto dense = dense_gradients(p);
  CHECK_FALSE(makes_row_gradients(dense));
  CHECK_FALSE(holds_rows(dense));
  CHECK(dense.main().ops.size() == p.main().ops.size());
  CHECK_FALSE(makes_row_gradients(embedding(false)));
}

TEST_CASE("updates that treat rows differently are refused") {
  CHECK(refusal(updated_by("adam", "lazy_mode", true)) == errc::unsupported_op);
  CHECK(refusal(updated_by("momentum", "rescale_grad", 0.5f))
        == errc::unsupported_op);
  CHECK(refusal(with(embedding(true), "lookup_table_v2_grad", "padding_idx",
                     std::int64_t{3}))
        == errc::unsupported_op);
  CHECK_NOTHROW(dense_gradients(updated_by("adam", "lazy_mode", false)));
  CHECK_NOTHROW(dense_gradients(updated_by("momentum", "rescale_grad", 1.0f)));
}

TEST_CASE("a lazy update of a dense gradient is as ever") {
  auto p = embedding(false);
  for (auto& op : p.main().ops)
    if (op.type == "sgd")
      op.type = "adam";
  CHECK_NOTHROW(dense_gradients(with(p, "adam", "lazy_mode", true)));
}

} // TEST_SUITE("graph.passes.dense_gradients")

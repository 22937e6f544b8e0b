// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/own_ops/own_op.hpp>

#include <support/caught.hpp>
#include <support/gaussian_op.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::test;

TEST_SUITE("graph.own_op") {

namespace {

struct tables {
  op_schema_table schemas = op_schemas();
  kernel_table kernels = cpu_kernels();

  error refused(const std::function<void(own_op&)>& change) {
    auto op = gaussian_op();
    change(op);
    return caught([&] { add_op(schemas, kernels, op); });
  }
};

} // namespace

TEST_CASE_FIXTURE(tables, "an own op has shapes, a gradient and kernels") {
  add_op(schemas, kernels, gaussian_op());
  CHECK(kernels.has("gaussian", device_kind::cpu));
  CHECK(kernels.has("gaussian_grad", device_kind::cpu));
  network net{schemas};
  const auto x = net.data("x", {-1, 3});
  const auto hidden = layers::fc(x, 5);
  const auto out = layers::op("gaussian", {{"X", {hidden}}}).at("Out");
  CHECK(out.dims() == shape{-1, 5});
  CHECK(out.type() == dtype::float32);
  CHECK(out.name() == "gaussian_0.tmp_0");
  optimizer::sgd().minimize(layers::mean(out));
  const auto& ops = net.main.main().ops;
  const auto gradient = std::ranges::find(ops, "gaussian_grad", &op_desc::type);
  REQUIRE(gradient != ops.end());
  CHECK(gradient->only_input("Out") == out.name());
  CHECK(gradient->only_output("X@GRAD") == gradient_name(hidden.name()));
}

TEST_CASE_FIXTURE(tables, "an op that is there already is refused") {
  add_op(schemas, kernels, gaussian_op());
  const auto twice = refused([](own_op&) {});
  CHECK(twice.code() == errc::invalid_argument);
  CHECK(twice.where().op_type == "gaussian");
  CHECK(says(twice, "the op 'gaussian' is there already"));
  CHECK(refused([](own_op& op) { op.schema.type = "relu"; }).where().op_type
        == "relu");
  kernels.add("other_grad", device_kind::cpu, gaussian);
  CHECK(refused([](own_op& op) { op.schema.type = "other"; }).where().op_type
        == "other_grad");
  CHECK_FALSE(schemas.contains("other"));
  CHECK_FALSE(kernels.has("other", device_kind::cpu));
}

TEST_CASE_FIXTURE(tables, "an op that is not whole is refused") {
  CHECK(says(refused([](own_op& op) { op.schema.type = ""; }), "no type"));
  CHECK(
    says(refused([](own_op& op) { op.schema.infer = nullptr; }), "no shapes"));
  CHECK(says(refused([](own_op& op) { op.run = nullptr; }), "no kernel"));
  CHECK(says(refused([](own_op& op) { op.gradient = nullptr; }),
             "no kernel for the gradient"));
  CHECK(says(refused([](own_op& op) { op.schema.gradient = {}; }),
             "no gradient rule"));
  CHECK_FALSE(schemas.contains("gaussian"));
  CHECK_FALSE(kernels.has("gaussian", device_kind::cpu));
}

TEST_CASE("layers::op makes the outputs of any op, and says what is wrong") {
  network net;
  const auto x = net.data("x", {-1, 3});
  const auto top = layers::op("top_k", {{"X", {x}}}, {{"k", 2}});
  CHECK(top.at("Out").dims() == shape{-1, 2});
  CHECK(top.at("Indices").type() == dtype::int64);
  CHECK(caught([&] {
          layers::op("gaussian", {{"X", {x}}});
        }).code()
        == errc::unsupported_op);
  CHECK(says(caught([&] { layers::op("relu", {}); }), "no input"));
  const auto wrong = caught([&] { layers::op("relu", {{"Y", {x}}}); });
  CHECK(wrong.code() == errc::graph_invalid);
  CHECK(says(wrong, "no input slot Y"));
}

} // TEST_SUITE("graph.own_op")

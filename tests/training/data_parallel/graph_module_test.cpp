// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data_parallel/graph_module.hpp>

#include <support/caught.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("training.data_parallel.graph_module") {

namespace {

/// A classifier that is trained, with a loss in its program.
struct classifier {
  graph::network net;
  graph::variable_ref x = net.data("x", {-1, 4});
  graph::variable_ref label = net.data("label", {-1, 1}, dtype::int64);
  graph::variable_ref hidden =
    layers::batch_norm(layers::fc(x, 3, {.act = "relu"}));
  graph::variable_ref scores = layers::fc(hidden, 2);
  graph::variable_ref loss = layers::cross_entropy(scores, label);

  classifier() { optimizer::adam({}).minimize(loss); }
};

} // namespace

TEST_CASE_FIXTURE(classifier,
                  "a module has the parameters and buffers that its "
                  "outputs need") {
  const graph_module all{describe_module(net, {x, label}, {loss})};
  CHECK(all.parameters()
        == std::vector<std::string>{"batch_norm_0.b_0", "batch_norm_0.w_0",
                                    "fc_0.b_0", "fc_0.w_0", "fc_1.b_0",
                                    "fc_1.w_0"});
  CHECK(all.buffers().size() == 2);
  graph_module head{describe_module(net, {x}, {hidden})};
  CHECK(head.parameters().size() == 4);
  CHECK(caught([&] { head.gradient("fc_1.w_0"); }).code() == errc::not_found);
  CHECK(head.gradient("fc_0.w_0") == nullptr);
}

TEST_CASE_FIXTURE(classifier, "values of a scope are used as they are") {
  auto values = std::make_shared<scope>();
  graph_module m{describe_module(net, {x}, {scores}), values};
  CHECK(&m.values() == values.get());
  CHECK(values->names().empty());
}

TEST_CASE_FIXTURE(classifier,
                  "what does not fit the program is refused, naming "
                  "the variable") {
  const auto refused = [&](auto change) {
    auto d = describe_module(net, {x, label}, {loss});
    change(d);
    return caught([&] { graph_module{d}; });
  };
  auto e = refused([](auto& d) { d.inputs = {"x"}; });
  CHECK(e.code() == errc::not_found);
  CHECK(e.where().variable == "label");
  CHECK(says(e, "the output " + loss.name() + " needs it"));
  e = refused([](auto& d) { d.inputs.push_back("y"); });
  CHECK(e.code() == errc::not_found);
  CHECK(says(e, "'y'"));
  e = refused([&](auto& d) { d.inputs.push_back(scores.name()); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(e.where().variable == scores.name());
  e = refused([](auto& d) { d.outputs = {"x"}; });
  CHECK(e.code() == errc::not_found);
  CHECK(e.where().variable == "x");
  e = refused([](auto& d) { d.input_gradients = {"label"}; });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(e.where().variable == "label");
  e = refused([&](auto& d) { d.input_gradients = {scores.name()}; });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "it is no input of the module"));
  e = refused([&](auto& d) { d.outputs.clear(); });
  CHECK(e.code() == errc::invalid_argument);
}

} // TEST_SUITE("training.data_parallel.graph_module")

// SPDX-License-Identifier: Apache-2.0
#include <support/caught.hpp>

#include <troupe/graph/gradients.hpp>
#include <troupe/graph/layers.hpp>

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::graph;
using test::caught;
using test::says;

TEST_SUITE("graph.gradients") {

namespace {

using strings = std::vector<std::string>;

std::vector<parameter_gradient> differentiate(network& net,
                                              const variable_ref& loss) {
  return append_backward(net.main, loss.name(), net.schemas());
}

/// "type: outputs" of the gradient ops, in order.
strings backward_ops(const network& net) {
  strings lines;
  for (const auto& op : net.main.main().ops)
    if (op.role() & role_backward) {
      auto line = op.type + ":";
      for (const auto& name : op.output_names())
        line += " " + name;
      lines.push_back(line);
    }
  return lines;
}

const op_desc& writer_of(const network& net, const std::string& name) {
  for (const auto& op : net.main.main().ops)
    for (const auto& output : op.output_names())
      if (output == name)
        return op;
  FAIL("nobody writes ", name);
  return net.main.main().ops.front();
}

} // namespace

TEST_CASE("gradient ops come in reverse order, the input's before the "
          "weight's") {
  network net;
  auto h = layers::fc(net.data("x", {-1, 4}), 3, {.act = "relu"});
  auto loss = layers::mean(layers::fc(h, 2, {.with_bias = false}));
  auto found = differentiate(net, loss);
  CHECK(backward_ops(net)
        == strings{
          "fill_constant: mean_0.tmp_0@GRAD", "mean_grad: fc_1.tmp_0@GRAD",
          "mul_grad: fc_0.tmp_2@GRAD", "mul_grad: fc_1.w_0@GRAD",
          "relu_grad: fc_0.tmp_1@GRAD", "elementwise_add_grad: fc_0.tmp_0@GRAD",
          "elementwise_add_grad: fc_0.b_0@GRAD", "mul_grad: fc_0.w_0@GRAD"});
  CHECK(found
        == std::vector<parameter_gradient>{{"fc_0.w_0", "fc_0.w_0@GRAD"},
                                           {"fc_0.b_0", "fc_0.b_0@GRAD"},
                                           {"fc_1.w_0", "fc_1.w_0@GRAD"}});
}

TEST_CASE("the loss, its gradient and the others have their roles") {
  network net;
  auto loss = layers::mean(layers::fc(net.data("x", {-1, 4}), 3));
  differentiate(net, loss);
  CHECK(writer_of(net, loss.name()).role() == (role_forward | role_loss));
  CHECK(writer_of(net, loss.name() + "@GRAD").role() == 257);
  CHECK(writer_of(net, "fc_0.w_0@GRAD").role() == role_backward);
  CHECK(find_loss(net.main) == loss.name());
}

TEST_CASE("the op that writes a parameter's gradient names both") {
  network net;
  auto x = net.data("x", {-1, 4});
  auto h = layers::batch_norm(layers::fc(x, 3, {.with_bias = false}));
  differentiate(net, layers::mean(h));
  using pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(writer_of(net, "fc_0.w_0@GRAD").role_vars()
        == pairs{{"fc_0.w_0", "fc_0.w_0@GRAD"}});
  CHECK(writer_of(net, "batch_norm_0.w_0@GRAD").role_vars()
        == pairs{{"batch_norm_0.w_0", "batch_norm_0.w_0@GRAD"},
                 {"batch_norm_0.b_0", "batch_norm_0.b_0@GRAD"}});
  CHECK(writer_of(net, "batch_norm_0.tmp_2@GRAD").role_vars().empty());
}

TEST_CASE("gradients keep the place of their forward op") {
  network net;
  auto x = net.data("x", {-1, 4});
  auto line = std::to_string(__LINE__ + 1);
  auto h = layers::fc(x, 3);
  differentiate(net, layers::mean(h));
  CHECK(writer_of(net, "fc_0.w_0@GRAD").call_stack()
        == strings{"gradients_test.cpp:" + line});
}

TEST_CASE("a shared parameter gets the sum of its gradients, behind the last") {
  network net;
  auto x = net.data("x", {-1, 4});
  const layers::fc_options shared{.with_bias = false, .weight = {.name = "w"}};
  auto h = layers::fc(layers::fc(x, 4, shared), 4, shared);
  differentiate(net, layers::mean(h));
  CHECK(backward_ops(net)
        == strings{"fill_constant: mean_0.tmp_0@GRAD",
                   "mean_grad: fc_1.tmp_0@GRAD", "mul_grad: fc_0.tmp_0@GRAD",
                   "mul_grad: w@GRAD@RENAME@block0@0",
                   "mul_grad: w@GRAD@RENAME@block0@1", "sum: w@GRAD"});
  const auto& sum = writer_of(net, "w@GRAD");
  CHECK(sum.input("X")
        == strings{"w@GRAD@RENAME@block0@0", "w@GRAD@RENAME@block0@1"});
  CHECK(sum.role() == role_backward);
  CHECK(sum.role_vars().size() == 1);
  CHECK(writer_of(net, "w@GRAD@RENAME@block0@0").role_vars().empty());
}

TEST_CASE("the sum of a skip connection is there before its gradient is read") {
  network net;
  auto h = layers::fc(net.data("x", {-1, 4}), 4);
  auto loss = layers::mean(layers::add(h, layers::relu(h)));
  differentiate(net, loss);
  CHECK(backward_ops(net)
        == strings{
          "fill_constant: mean_0.tmp_0@GRAD",
          "mean_grad: elementwise_add_0.tmp_0@GRAD",
          "elementwise_add_grad: fc_0.tmp_1@GRAD@RENAME@block0@0",
          "elementwise_add_grad: relu_0.tmp_0@GRAD",
          "relu_grad: fc_0.tmp_1@GRAD@RENAME@block0@1", "sum: fc_0.tmp_1@GRAD",
          "elementwise_add_grad: fc_0.tmp_0@GRAD",
          "elementwise_add_grad: fc_0.b_0@GRAD", "mul_grad: fc_0.w_0@GRAD"});
}

TEST_CASE("what leads to no parameter or not to the loss has no gradient") {
  network net;
  auto x = net.data("x", {-1, 4});
  auto label = net.data("label", {-1, 1}, dtype::int64);
  auto scaled = layers::scale(x, {.scale = 2}); // no parameter before it
  auto h = layers::fc(scaled, 3);
  layers::fc(h, 7); // does not lead to the loss
  auto loss = layers::cross_entropy(h, label);
  layers::accuracy(h, label);
  auto found = differentiate(net, loss);
  CHECK(found.size() == 2);
  CHECK(net.main.main().find_var("scale_0.tmp_0@GRAD") == nullptr);
  CHECK(net.main.main().find_var("label@GRAD") == nullptr);
  CHECK(net.main.main().find_var("fc_1.w_0@GRAD") == nullptr);
  CHECK(net.main.main().find_var("fc_0.w_0@GRAD"));
}

TEST_CASE("nothing flows through stop_gradient") {
  network net;
  auto x = net.data("x", {-1, 4});
  auto h = layers::fc(x, 3, {.with_bias = false});
  net.main.main().find_var(h.name())->stop_gradient = true;
  auto frozen =
    layers::fc(h, 3, {.with_bias = false, .weight = {.trainable = false}});
  auto loss = layers::mean(layers::fc(frozen, 1, {.with_bias = false}));
  CHECK(differentiate(net, loss)
        == std::vector<parameter_gradient>{{"fc_2.w_0", "fc_2.w_0@GRAD"}});
  CHECK(net.main.main().find_var("fc_1.tmp_0@GRAD") == nullptr);
}

TEST_CASE("an op that joins wanted and unwanted inputs keeps their positions") {
  network net;
  auto x = net.data("x", {-1, 4});
  auto h = layers::fc(x, 3);
  auto joined = layers::concat({x, h, x}, {.axis = 1});
  differentiate(net, layers::mean(joined));
  const auto& outputs = writer_of(net, "fc_0.tmp_1@GRAD").output("X@GRAD");
  REQUIRE(outputs.size() == 3);
  CHECK(outputs[1] == "fc_0.tmp_1@GRAD");
  CHECK(outputs[0] != outputs[2]);
  CHECK(net.main.main().find_var("x@GRAD") == nullptr); // no sum
}

TEST_CASE("an output of split that leads nowhere gets a zero gradient") {
  network net;
  auto parts = layers::split(layers::fc(net.data("x", {-1, 4}), 4));
  differentiate(net, layers::mean(parts[0]));
  const auto& zero = writer_of(net, parts[1].name() + "@GRAD");
  CHECK(zero.type == "scale");
  CHECK(zero.attributes.get_float("scale", 1) == 0);
  CHECK(writer_of(net, "fc_0.tmp_1@GRAD").type == "concat");
}

TEST_CASE("gradients have shape and dtype of their variables") {
  network net;
  auto h = layers::fc(net.data("x", {-1, 4}), 3);
  differentiate(net, layers::mean(layers::add(h, h)));
  const auto& b = net.main.main();
  CHECK(b.var("fc_0.tmp_1@GRAD").dims == shape{-1, 3});
  CHECK(b.var("fc_0.tmp_1@GRAD@RENAME@block0@1").dims == shape{-1, 3});
  CHECK(b.var("fc_0.w_0@GRAD").dims == shape{4, 3});
  CHECK_FALSE(b.var("fc_0.w_0@GRAD").persistable);
  CHECK_FALSE(b.var("fc_0.w_0@GRAD").is_parameter);
}

TEST_CASE("rows of sparse embeddings stay rows until something dense joins") {
  network net;
  auto ids = net.data("ids", {-1, 1}, dtype::int64);
  const layers::embedding_options table{
    .rows = 9, .width = 4, .is_sparse = true, .weight = {.name = "table"}};
  auto first = layers::flatten(layers::embedding(ids, table));
  auto second = layers::flatten(layers::embedding(ids, table));
  auto h = layers::add(first, second);
  SUBCASE("all sparse") {
    differentiate(net, layers::mean(h));
    CHECK(net.main.main().var("table@GRAD").kind == var_kind::selected_rows);
    CHECK(writer_of(net, "table@GRAD").type == "sum");
  }
  SUBCASE("mixed") {
    auto scores =
      layers::matmul(h, {net, "table"}, {.transpose_y = true}); // tied
    differentiate(net, layers::mean(scores));
    CHECK(net.main.main().var("table@GRAD").kind == var_kind::dense);
    CHECK(writer_of(net, "table@GRAD").input("X").size() == 3);
  }
}

TEST_CASE("only a parameter can have a sparse gradient") {
  network net;
  auto ids = net.data("ids", {-1, 1}, dtype::int64);
  layers::embedding(
    ids,
    {.rows = 9, .width = 4, .is_sparse = true, .weight = {.name = "table"}});
  auto scaled = layers::scale({net, "table"}, {.scale = 2});
  op_desc op = net.main.main().ops.front();
  op.set_input("W", {scaled.name()});
  auto out = net.temporary("out");
  op.set_output("Out", {"out"});
  net.append(op, std::source_location::current());
  auto loss = layers::mean(out);
  auto e = caught([&] { differentiate(net, loss); });
  CHECK(e.code() == errc::graph_invalid);
  CHECK(says(e, scaled.name()));
}

TEST_CASE("fixed statistics are read from the running ones") {
  network net;
  auto h = layers::fc(net.data("x", {-1, 4}), 3);
  bool global = false;
  SUBCASE("of the batch") {}
  SUBCASE("running") {
    global = true;
  }
  h = layers::batch_norm(h, {.use_global_stats = global});
  differentiate(net, layers::mean(h));
  const auto& op = writer_of(net, "batch_norm_0.w_0@GRAD");
  CHECK(op.input("Mean").empty() == !global);
  CHECK(op.input("SavedMean").empty() == global);
}

TEST_CASE("a loss that cannot be minimised is refused and nothing changes") {
  network net;
  auto x = net.data("x", {-1, 4});
  auto h = layers::fc(x, 3);
  auto mean = layers::mean(h);
  auto unrelated = layers::mean(x);
  const auto before = net.main.main().ops;
  auto code = [&](const std::string& loss) {
    return caught([&] { append_backward(net.main, loss, net.schemas()); });
  };
  auto e = code(h.name());
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "[-1, 3]"));
  CHECK(code("nothing").code() == errc::not_found);
  CHECK(code(unrelated.name()).code() == errc::invalid_argument);
  net.data("scalar", {1});
  CHECK(code("scalar").code() == errc::not_found);
  CHECK(net.main.main().ops.size() == before.size());
  CHECK(net.main.main().ops.back().role() == role_forward);
  differentiate(net, mean);
  CHECK(code(mean.name()).code() == errc::invalid_argument); // twice
}

TEST_CASE("a variable that is written twice has no defined gradient") {
  network net;
  auto h = layers::fc(net.data("x", {-1, 4}), 3);
  op_desc op;
  op.type = "relu";
  op.set_input("X", {h.name()});
  op.set_output("Out", {h.name()});
  net.append(op, std::source_location::current());
  auto loss = layers::mean(h);
  auto e = caught([&] { differentiate(net, loss); });
  CHECK(e.code() == errc::graph_invalid);
  CHECK(says(e, h.name()));
}

TEST_CASE("gradients of outputs are given by feeds, and inputs can have one") {
  network net;
  auto x = net.data("x", {-1, 4}), z = net.data("z", {-1, 4});
  auto h = layers::fc(x, 3, {.with_bias = false});
  auto y = layers::tanh(h); // reads the output h
  auto number = layers::cast(z, dtype::int64);
  const strings outputs{h.name(), number.name(), y.name()}, inputs{"x", "z"};
  const auto made = append_gradients(net.main, outputs, inputs, net.schemas());
  CHECK(made.given
        == strings{h.name() + "@GRAD@GIVEN", "", y.name() + "@GRAD@GIVEN"});
  CHECK(made.inputs == strings{"x@GRAD", ""});
  CHECK(made.parameters
        == std::vector<parameter_gradient>{{"fc_0.w_0", "fc_0.w_0@GRAD"}});
  CHECK(backward_ops(net)
        == strings{"assign: fc_0.tmp_0@GRAD@RENAME@block0@0",
                   "assign: tanh_0.tmp_0@GRAD",
                   "tanh_grad: fc_0.tmp_0@GRAD@RENAME@block0@1",
                   "sum: fc_0.tmp_0@GRAD", "mul_grad: x@GRAD",
                   "mul_grad: fc_0.w_0@GRAD"});
  CHECK(feed_names(net.main)
        == strings{made.given[0], made.given[2], "x", "z"});
  CHECK(net.main.main().var(made.given[0]).dims == h.dims());
  for (auto& op : net.main.main().ops)
    CHECK((op.role() & role_loss) == 0);
}

TEST_CASE(
  "outputs and inputs without a gradient are refused, and the program is "
  "unchanged") {
  network net;
  auto x = net.data("x", {-1, 4});
  auto id = net.data("id", {-1, 1}, dtype::int64);
  auto y = layers::fc(x, 3), z = layers::square(x);
  const auto before = net.main.main().ops.size();
  const auto refused = [&](const strings& outputs, const strings& inputs) {
    return caught(
      [&] { append_gradients(net.main, outputs, inputs, net.schemas()); });
  };
  CHECK(refused({"nothing"}, {}).code() == errc::not_found);
  CHECK(refused({"x"}, {}).code() == errc::not_found);
  CHECK(refused({y.name()}, {"nothing"}).code() == errc::not_found);
  CHECK(refused({y.name(), y.name()}, {}).code() == errc::invalid_argument);
  auto e = refused({y.name()}, {"id"});
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "int64 has no gradient"));
  CHECK(refused({z.name()}, {}).code() == errc::invalid_argument);
  CHECK(net.main.main().ops.size() == before);
  append_gradients(net.main, strings{y.name()}, strings{}, net.schemas());
  CHECK(refused({y.name()}, {}).code() == errc::invalid_argument);
}

} // TEST_SUITE("graph.gradients")

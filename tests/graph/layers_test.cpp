// SPDX-License-Identifier: Apache-2.0
#include <support/caught.hpp>

#include <troupe/graph/layers.hpp>

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::graph;
using test::caught;
using test::says;

TEST_SUITE("graph.layers") {

namespace {

const op_desc& last_op(const network& net) {
  return net.main.main().ops.back();
}

/// A network with some inputs of the shapes that layers take.
struct inputs {
  network net;
  variable_ref x = net.data("x", {-1, 6});
  variable_ref sequence = net.data("sequence", {-1, 5, 8});
  variable_ref image = net.data("image", {-1, 4, 9, 7});
  variable_ref ids = net.data("ids", {-1, 3}, dtype::int64);
  variable_ref label = net.data("label", {-1, 1}, dtype::int64);
};

} // namespace

TEST_CASE_FIXTURE(inputs, "fc flattens all extents but the leading ones") {
  CHECK(layers::fc(x, 10).dims() == shape{-1, 10});
  CHECK(layers::fc(image, 10).dims() == shape{-1, 10});
  CHECK(net.main.main().var("fc_1.w_0").dims == shape{252, 10});
  auto y = layers::fc(sequence, 2, {.num_flatten_dims = 2, .with_bias = false});
  CHECK(y.dims() == shape{-1, 5, 2});
  CHECK(last_op(net).type == "mul");
}

TEST_CASE_FIXTURE(inputs, "fc needs a known number of columns and a size") {
  auto open = net.data("open", {-1, -1});
  auto e = caught([&] { layers::fc(open, 10); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "'open'"));
  CHECK(says(e, "[-1, -1]"));
  CHECK(caught([&] { layers::fc(x, 0); }).code() == errc::invalid_argument);
  CHECK(caught([&] { layers::fc(x, 2, {.num_flatten_dims = 2}); }).code()
        == errc::shape_mismatch);
}

TEST_CASE_FIXTURE(inputs, "conv2d follows kernel, stride, padding, dilation") {
  auto dims = [&](const layers::conv2d_options& options) {
    return layers::conv2d(image, options).dims();
  };
  CHECK(dims({.filters = 2}) == shape{-1, 2, 7, 5});
  CHECK(dims({.filters = 2, .kernel = {5, 1}}) == shape{-1, 2, 5, 7});
  CHECK(dims({.filters = 2, .stride = 2, .padding = 1}) == shape{-1, 2, 5, 4});
  CHECK(dims({.filters = 2, .dilation = {4, 3}}) == shape{-1, 2, 1, 1});
}

TEST_CASE_FIXTURE(inputs, "a convolution with one channel per group is "
                          "depthwise") {
  layers::conv2d(image, {.filters = 8, .groups = 4, .with_bias = false});
  CHECK(last_op(net).type == "depthwise_conv2d");
  CHECK(net.main.main().var("conv2d_0.w_0").dims == shape{8, 1, 3, 3});
  layers::conv2d(image, {.filters = 8, .groups = 2, .with_bias = false});
  CHECK(last_op(net).type == "conv2d");
  CHECK(net.main.main().var("conv2d_1.w_0").dims == shape{8, 2, 3, 3});
}

TEST_CASE_FIXTURE(inputs,
                  "a convolution that does not fit says what does not") {
  auto e = caught([&] { layers::conv2d(image, {.filters = 2, .kernel = 8}); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "op conv2d"));
  CHECK(says(e, "Input 'image' [-1, 4, 9, 7]"));
  CHECK(says(e, "[2, 4, 8, 8]"));
  CHECK(says(e, "layers_test.cpp:"));
  CHECK(caught([&] { layers::conv2d(image, {}); }).code()
        == errc::invalid_argument);
  CHECK(caught([&] { layers::conv2d(x, {.filters = 1}); }).code()
        == errc::shape_mismatch);
  e = caught([&] { layers::conv2d(image, {.filters = 3, .groups = 3}); });
  CHECK(says(e, "3 groups"));
  e = caught([&] { layers::conv2d(image, {.filters = 3, .groups = 2}); });
  CHECK(says(e, "2 groups"));
  CHECK(
    caught([&] { layers::conv2d(image, {.filters = 1, .stride = 0}); }).code()
    == errc::invalid_argument);
}

TEST_CASE_FIXTURE(inputs, "pooling rounds down, or up in ceil mode") {
  CHECK(layers::pool2d(image).dims() == shape{-1, 4, 4, 3});
  CHECK(layers::pool2d(image, {.ceil_mode = true}).dims()
        == shape{-1, 4, 5, 4});
  CHECK(layers::pool2d(image, {.kernel = 3, .padding = 1}).dims()
        == shape{-1, 4, 5, 4});
  CHECK(layers::adaptive_pool2d(image).dims() == shape{-1, 4, 1, 1});
  CHECK(layers::adaptive_pool2d(image, {.output = {2, 3}}).dims()
        == shape{-1, 4, 2, 3});
  auto e = caught([&] { layers::pool2d(image, {.kernel = 10}); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "X 'image' [-1, 4, 9, 7]"));
}

TEST_CASE_FIXTURE(inputs, "normalisations keep the shape") {
  CHECK(layers::batch_norm(image).dims() == image.dims());
  CHECK(net.main.main().var("batch_norm_0.w_2").dims == shape{4});
  CHECK(layers::batch_norm(x, {.act = "relu"}).dims() == x.dims());
  CHECK(layers::layer_norm(sequence, {.begin_norm_axis = 2}).dims()
        == sequence.dims());
  CHECK(net.main.main().var("layer_norm_0.w_0").dims == shape{8});
  CHECK(layers::batch_norm(sequence).dims() == sequence.dims());
  CHECK(caught([&] { layers::layer_norm(x, {.begin_norm_axis = 2}); }).code()
        == errc::shape_mismatch);
}

TEST_CASE_FIXTURE(inputs, "batch_norm updates its statistics in place") {
  layers::batch_norm(image);
  const auto& op = last_op(net);
  CHECK(op.only_output("MeanOut") == op.only_input("Mean"));
  CHECK(op.only_output("VarianceOut") == op.only_input("Variance"));
}

TEST_CASE_FIXTURE(inputs, "embedding adds the width to the shape of the ids") {
  auto e = layers::embedding(
    ids, {.rows = 10, .width = 7, .is_sparse = true, .padding_idx = 2});
  CHECK(e.dims() == shape{-1, 3, 7});
  CHECK(e.type() == dtype::float32);
  CHECK(last_op(net).attributes.get_bool("is_sparse", false));
  CHECK(last_op(net).attributes.get_int("padding_idx", -1) == 2);
  auto bad = caught([&] { layers::embedding(x, {.rows = 10, .width = 7}); });
  CHECK(bad.code() == errc::dtype_mismatch);
  CHECK(says(bad, "Ids 'x'"));
  CHECK(says(bad, "float32"));
  CHECK(caught([&] { layers::embedding(ids, {.rows = 3}); }).code()
        == errc::invalid_argument);
}

TEST_CASE_FIXTURE(inputs, "functions of one input keep its shape") {
  for (auto y :
       {layers::relu(x), layers::sigmoid(x), layers::tanh(x), layers::square(x),
        layers::gelu(x), layers::softmax(x), layers::scale(x, {.scale = 2}),
        layers::dropout(x), layers::assign(x)})
    CHECK(y.dims() == x.dims());
  CHECK(layers::cast(x, dtype::int64).type() == dtype::int64);
  CHECK(caught([&] { layers::softmax(x, {.axis = 2}); }).code()
        == errc::invalid_argument);
  CHECK(caught([&] { layers::dropout(x, {.probability = 1.5f}); }).code()
        == errc::invalid_argument);
}

TEST_CASE_FIXTURE(inputs, "activations go by name") {
  CHECK(layers::activation(x, "").name() == "x");
  CHECK(layers::activation(x, "gelu").name() == "gelu_0.tmp_0");
  auto e = caught([&] { layers::fc(x, 2, {.act = "swish"}); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "'swish'"));
  CHECK(says(e, "relu, sigmoid, tanh, gelu, softmax"));
}

TEST_CASE_FIXTURE(inputs, "dropout has a mask of bytes") {
  layers::dropout(x, {.upscale_in_train = false});
  const auto& op = last_op(net);
  CHECK(net.main.main().var(op.only_output("Mask")).type == dtype::uint8);
  CHECK(op.attributes.get_string("dropout_implementation", "")
        == "downgrade_in_infer");
}

TEST_CASE_FIXTURE(inputs, "extents of 1 repeat, unknown ones give way") {
  auto row = net.data("row", {1, 6});
  auto known = net.data("known", {4, 6});
  auto last = net.data("last", {6});
  CHECK(layers::add(x, row).dims() == shape{-1, 6});
  CHECK(layers::sub(row, x).dims() == shape{-1, 6});
  CHECK(layers::mul(x, known).dims() == shape{4, 6});
  CHECK(layers::add(last, known).dims() == shape{4, 6});
  auto e = caught([&] { layers::add(x, sequence); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "elementwise_add"));
  CHECK(says(e, "[-1, 6]"));
  CHECK(says(e, "[-1, 5, 8]"));
}

TEST_CASE_FIXTURE(inputs, "sum takes variables of one shape") {
  CHECK(layers::sum({x, x, x}).dims() == x.dims());
  auto e = caught([&] { layers::sum({x, sequence}); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "'sequence'"));
  CHECK(caught([&] { layers::sum({}); }).code() == errc::invalid_argument);
}

TEST_CASE_FIXTURE(inputs, "matmul multiplies the last two axes") {
  auto y = net.data("y", {3, 8, 2});
  auto batches = net.data("batches", {7, 1, 5, 8});
  CHECK(layers::matmul(sequence, y).dims() == shape{3, 5, 2});
  CHECK(layers::matmul(batches, y).dims() == shape{7, 3, 5, 2});
  auto one = net.data("one", {1, 8, 2});
  CHECK(layers::matmul(sequence, one).dims() == shape{-1, 5, 2});
  CHECK(layers::matmul(y, sequence, {.transpose_x = true, .transpose_y = true})
          .dims()
        == shape{3, 2, 5});
  auto e = caught([&] { layers::matmul(sequence, y, {.transpose_y = true}); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "Y 'y' [3, 8, 2]"));
  CHECK(says(e, "X [-1, 5, 8]"));
  auto z = net.data("z", {2, 8, 2});
  CHECK(caught([&] { layers::matmul(layers::matmul(batches, y), z); }).code()
        == errc::shape_mismatch);
}

TEST_CASE_FIXTURE(inputs, "concat adds extents along its axis") {
  auto y = net.data("y", {-1, 2, 8});
  CHECK(layers::concat({sequence, y}, {.axis = 1}).dims() == shape{-1, 7, 8});
  CHECK(layers::concat({x, x}).dims() == shape{-1, 6});
  auto e = caught([&] { layers::concat({sequence, y}, {.axis = 2}); });
  CHECK(says(e, "X 'y' [-1, 2, 8]"));
  CHECK(says(e, "[-1, 5, 8] except along axis 2"));
  CHECK(caught([&] { layers::concat({x, y}); }).code() == errc::shape_mismatch);
  CHECK(caught([&] {
          layers::concat({x, x}, {.axis = 2});
        }).code()
        == errc::invalid_argument);
}

TEST_CASE_FIXTURE(inputs, "split makes equal parts or sections") {
  auto parts = layers::split(x, {.parts = 3});
  REQUIRE(parts.size() == 3);
  CHECK(parts[2].dims() == shape{-1, 2});
  parts = layers::split(sequence, {.axis = 1, .sections = {1, -1}});
  CHECK(parts[1].dims() == shape{-1, 4, 8});
  CHECK(caught([&] { layers::split(x, {.parts = 4}); }).code()
        == errc::shape_mismatch);
  CHECK(caught([&] {
          layers::split(x, {.sections = {1, 2}});
        }).code()
        == errc::shape_mismatch);
  CHECK(caught([&] { layers::split(x, {.parts = 0}); }).code()
        == errc::invalid_argument);
}

TEST_CASE_FIXTURE(inputs, "reshape copies extents for 0 and infers one") {
  CHECK(layers::reshape(sequence, {0, -1}).dims() == shape{-1, 40});
  CHECK(layers::reshape(sequence, {0, 5, 4, 2}).dims() == shape{-1, 5, 4, 2});
  CHECK(layers::reshape(sequence, {-1, 8}).dims() == shape{-1, 8});
  CHECK(net.main.main().var(last_op(net).only_output("XShape")).dims
        == shape{0, -1, 5, 8});
  auto e = caught([&] { layers::reshape(sequence, {0, 7}); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "X 'sequence' [-1, 5, 8]"));
  CHECK(says(e, "[0, 7]"));
  CHECK(caught([&] {
          layers::reshape(x, {-1, -1});
        }).code()
        == errc::invalid_argument);
  CHECK(caught([&] {
          layers::reshape(x, {6, -1, 0});
        }).code()
        == errc::shape_mismatch);
}

TEST_CASE_FIXTURE(inputs, "transpose, flatten and slice move extents") {
  CHECK(layers::transpose(image, {0, 2, 3, 1}).dims() == shape{-1, 9, 7, 4});
  CHECK(layers::flatten(image).dims() == shape{-1, 252});
  CHECK(layers::flatten(image, {.start_axis = 0, .stop_axis = 1}).dims()
        == shape{-1, 9, 7});
  CHECK(layers::slice(sequence,
                      {.axes = {1, 2}, .starts = {1, -3}, .ends = {9, -1}})
          .dims()
        == shape{-1, 4, 2});
  CHECK(caught([&] {
          layers::transpose(x, {0, 0});
        }).code()
        == errc::invalid_argument);
  CHECK(caught([&] { layers::transpose(x, {0}); }).code()
        == errc::invalid_argument);
  CHECK(caught([&] {
          layers::flatten(image, {.start_axis = 2, .stop_axis = 1});
        }).code()
        == errc::invalid_argument);
  CHECK(caught([&] {
          layers::slice(x, {.axes = {0}, .starts = {0}, .ends = {}});
        }).code()
        == errc::invalid_argument);
}

TEST_CASE_FIXTURE(inputs, "reductions drop their axes or keep them as 1") {
  CHECK(layers::mean(image).dims() == shape{});
  CHECK(layers::reduce_sum(image).dims() == shape{});
  CHECK(layers::reduce_mean(image, {.axes = {2, -1}}).dims() == shape{-1, 4});
  CHECK(layers::reduce_mean(image, {.axes = {1}, .keep_dims = true}).dims()
        == shape{-1, 1, 9, 7});
}

TEST_CASE_FIXTURE(inputs, "cross entropy takes a class for each line") {
  auto loss = layers::softmax_with_cross_entropy(x, label);
  CHECK(loss.dims() == shape{-1, 1});
  CHECK(layers::cross_entropy(x, label).dims() == shape{});
  auto classes = net.data("classes", {-1}, dtype::int64);
  CHECK(layers::softmax_with_cross_entropy(x, classes).dims() == shape{-1, 1});
  auto soft = net.data("soft", {-1, 6});
  CHECK(layers::softmax_with_cross_entropy(x, soft, {.soft_label = true}).dims()
        == shape{-1, 1});
  auto e = caught([&] { layers::softmax_with_cross_entropy(x, soft); });
  CHECK(e.code() == errc::dtype_mismatch);
  e = caught([&] { layers::softmax_with_cross_entropy(x, ids); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "Label 'ids' [-1, 3]"));
  CHECK(says(e, "Logits [-1, 6]"));
}

TEST_CASE_FIXTURE(inputs, "accuracy counts labels among the k largest") {
  CHECK(layers::accuracy(x, label, {.k = 5}).dims() == shape{});
  const auto& op = last_op(net);
  CHECK(net.main.main().var(op.only_input("Indices")).dims == shape{-1, 5});
  CHECK(net.main.main().var(op.only_output("Correct")).type == dtype::int32);
  CHECK(caught([&] { layers::accuracy(x, label, {.k = 7}); }).code()
        == errc::shape_mismatch);
}

TEST_CASE_FIXTURE(inputs, "a layer takes variables of one network") {
  network other;
  const auto foreign = other.data("foreign", {-1, 3});
  const auto own = net.data("own", {-1, 3});
  const auto refused = [&](auto&& layer) {
    const auto e = caught(layer);
    CHECK(e.code() == errc::invalid_argument);
    CHECK(e.where().variable == "foreign");
    CHECK(says(e, "'foreign' in slot "));
    CHECK(says(e, "of another network"));
  };
  refused([&] { layers::add(own, foreign); });
  refused([&] { layers::sub(own, foreign); });
  refused([&] { layers::mul(own, foreign); });
  refused([&] { layers::matmul(own, foreign); });
  refused([&] { layers::sum({own, own, foreign}); });
  refused([&] { layers::concat({own, foreign}); });
  refused([&] { layers::softmax_with_cross_entropy(own, foreign); });
  refused([&] { layers::cross_entropy(own, foreign); });
  refused([&] { layers::accuracy(own, foreign); });
  CHECK(other.main.main().ops.empty());
}

TEST_CASE("an op type without schema is refused, and so are wrong slots") {
  network net;
  net.data("x", {2});
  auto y = net.temporary("y");
  op_desc op;
  op.type = "rely";
  op.set_input("X", {"x"});
  op.set_output("Out", {"y"});
  auto append = [&] { net.append(op, std::source_location::current()); };
  auto e = caught(append);
  CHECK(e.code() == errc::unsupported_op);
  CHECK(says(e, "'rely'"));
  op.type = "relu";
  op.set_input("Y", {"x"});
  e = caught(append);
  CHECK(e.code() == errc::graph_invalid);
  CHECK(says(e, "no input slot Y"));
  op.set_input("Y", {});
  op.set_input("X", {"x", "x"});
  CHECK(says(caught(append), "exactly one variable in input slot X, not 2"));
  op.set_input("X", {"z"});
  e = caught(append);
  CHECK(e.code() == errc::not_found);
  CHECK(says(e, "'z'"));
  CHECK(net.main.main().ops.empty());
}

} // TEST_SUITE("graph.layers")

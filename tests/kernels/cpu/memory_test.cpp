// SPDX-License-Identifier: Apache-2.0
// What the fast kernels share, and what they write in place.
#include <kernels/cpu/hand_run.hpp>

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::test;
using floats = std::vector<float>;

TEST_SUITE("kernels.cpu.memory") {
TEST_CASE("relu written over its input gives the same values") {
  hand_run op("relu");
  auto& x = op.input("X", {5}, {-1, 2, -3, 4, 0});
  op.output("Out", x);
  const auto* before = memory_of(x);
  op.run();
  CHECK(elements(x) == floats{0, 2, 0, 4, 0});
  CHECK(memory_of(x) == before);
}

TEST_CASE("a sum may be written over any of its terms") {
  for (int target = 0; target < 3; ++target) {
    hand_run op("sum");
    variable* terms[3];
    for (auto& term : terms)
      term = &op.input("X", {3}, {1, 2, 3});
    op.output("Out", *terms[target]);
    op.run();
    CHECK(elements(*terms[target]) == floats{3, 6, 9});
  }
}

TEST_CASE("both gradients of a product survive one written over Out@GRAD") {
  hand_run op("elementwise_mul_grad");
  op.input("X", {2}, {2, 3});
  op.input("Y", {2}, {5, 7});
  auto& d = op.input("Out@GRAD", {2}, {10, 100});
  op.output("X@GRAD", d);
  auto& dy = op.output("Y@GRAD");
  op.run();
  CHECK(elements(d) == floats{50, 700});
  CHECK(elements(dy) == floats{20, 300});
}

TEST_CASE("softmax_with_cross_entropy may write Softmax over Logits") {
  floats expected;
  for (const bool over : {false, true}) {
    hand_run op("softmax_with_cross_entropy");
    auto& logits = op.input("Logits", {1, 3}, {1, 2, 4});
    op.labels("Label", {1, 1}, {1});
    over ? op.output("Softmax", logits) : op.output("Softmax");
    auto& loss = op.output("Loss");
    op.run();
    if (over)
      CHECK(elements(loss) == expected);
    expected = elements(loss);
  }
}

TEST_CASE("optimizers update parameters and moments in place") {
  hand_run op("adam");
  op.input("LearningRate", {1}, {0.1f});
  op.input("Grad", {2}, {1, -1});
  std::vector<std::pair<variable*, const std::byte*>> places;
  const auto in_place = [&](const char* in, const char* out, shape dims,
                            floats values) {
    auto& var = op.input(in, dims, values);
    op.output(out, var);
    places.emplace_back(&var, memory_of(var));
  };
  in_place("Param", "ParamOut", {2}, {1, 1});
  in_place("Moment1", "Moment1Out", {2}, {0, 0});
  in_place("Moment2", "Moment2Out", {2}, {0, 0});
  in_place("Beta1Pow", "Beta1PowOut", {1}, {0.9f});
  in_place("Beta2Pow", "Beta2PowOut", {1}, {0.999f});
  op.run();
  for (const auto& [var, memory] : places)
    CHECK(memory_of(*var) == memory);
  CHECK(elements(*places[0].first)[0] == doctest::Approx(0.9));
  CHECK(elements(*places[0].first)[1] == doctest::Approx(1.1));
  CHECK(elements(*places[3].first)[0] == doctest::Approx(0.81));
}

TEST_CASE("reshape2 shares memory, which is not written in place then") {
  hand_run reshape("reshape2", {{"shape", std::vector<std::int32_t>{4}}});
  auto& x = reshape.input("X", {2, 2}, {1, -2, 3, -4});
  auto& flat = reshape.output("Out");
  auto& xshape = reshape.output("XShape");
  reshape.run();
  CHECK(memory_of(flat) == memory_of(x));
  CHECK(xshape.as_tensor().dims() == shape{0, 2, 2});

  hand_run relu("relu");
  relu.input("X", x);
  relu.output("Out", x);
  relu.run();
  CHECK(elements(x) == floats{1, 0, 3, 0});
  CHECK(elements(flat) == floats{1, -2, 3, -4});
}

TEST_CASE("the second run of a convolution takes no further memory") {
  const auto device = make_cpu_device(0);
  const attribute_map attributes;
  auto kernel = cpu_kernels().make("conv2d", device_kind::cpu, attributes);
  variable x;
  variable w;
  variable out;
  x.set(tensor::make(device->memory(), {2, 3, 8, 8}, dtype::float32));
  w.set(tensor::make(device->memory(), {32, 3, 3, 3}, dtype::float32));
  const argument_list inputs{{"Input", "x", &x}, {"Filter", "w", &w}};
  const argument_list outputs{{"Output", "out", &out}};
  const step_info step{};
  kernel_context ctx(*device, nullptr, attributes, inputs, outputs, step);
  kernel->run(ctx);
  const auto reserved = device->memory().reserved_bytes();
  const auto* place = memory_of(out);
  kernel->run(ctx);
  CHECK(device->memory().reserved_bytes() == reserved);
  CHECK(memory_of(out) == place);
}
} // TEST_SUITE("kernels.cpu.memory")

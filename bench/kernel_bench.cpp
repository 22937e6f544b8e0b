// SPDX-License-Identifier: Apache-2.0
// Measures the CPU kernels on one thread: GFLOP/s of matrix products and
// convolutions with the shapes of LeNet, ResNet and GPT, GB/s of elementwise
// loops and of optimizers. Bytes are the minimum that an op must read and
// write.
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/kernel_options.hpp>
#include <troupe/kernels/random.hpp>

#include <benchmark/benchmark.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

using troupe::attribute_map;
using troupe::precision;
using troupe::shape;

// One op with its variables, ready to run repeatedly.
class ready_op {
public:
  ready_op(const std::string& type, const attribute_map& attributes,
           const troupe::kernel_options& options)
    : attributes_(attributes),
      kernel_(troupe::cpu_kernels(options).make(type, troupe::device_kind::cpu,
                                                attributes_)) {}

  void input(const char* slot, const shape& dims) {
    auto value =
      troupe::tensor::make(device_->memory(), dims, troupe::dtype::float32);
    const troupe::philox random(
      1, static_cast<std::uint32_t>(inputs_.view().size()), 0);
    std::uint64_t index = 0;
    for (float& element : value.values<float>())
      element = random.uniform(index++) + 0.01f;
    add_input(slot, std::move(value));
  }

  void image(const char* slot, const shape& dims) {
    input(slot, dims);
    auto& value = variables_.back().as_tensor();
    if (troupe::cpu::fits_blocks(dims, 16))
      value = {dims, value.type(), value.memory(),
               troupe::cpu::channel_blocks(dims, {16})};
  }

  void indices(const char* slot, const shape& dims, std::int64_t end) {
    auto value =
      troupe::tensor::make(device_->memory(), dims, troupe::dtype::int64);
    const troupe::philox random(2, 0, 0);
    std::uint64_t index = 0;
    for (std::int64_t& element : value.values<std::int64_t>())
      element = static_cast<std::int64_t>(random.block(index++)[0]) % end;
    add_input(slot, std::move(value));
  }

  void output(const char* slot) {
    variables_.emplace_back();
    outputs_.add({slot, slot, &variables_.back()});
  }

  void in_place(const char* slot) {
    outputs_.add({slot, slot, inputs_.view().variables().back()});
  }

  void run() {
    const troupe::step_info step{};
    troupe::kernel_context ctx(*device_, nullptr, attributes_, inputs_,
                               outputs_, step);
    kernel_->run(ctx);
  }

private:
  void add_input(const char* slot, troupe::tensor value) {
    variables_.emplace_back().set(std::move(value));
    inputs_.add({slot, slot, &variables_.back()});
  }

  attribute_map attributes_;
  std::unique_ptr<troupe::device> device_ = troupe::make_cpu_device(0);
  std::unique_ptr<troupe::kernel> kernel_;
  std::deque<troupe::variable> variables_;
  troupe::argument_list inputs_;
  troupe::argument_list outputs_;
};

// The description of an op to measure. It has memory only while it runs,
// because a run of the benchmark often selects only a few ops.
class bench_op {
public:
  bench_op(std::string type, attribute_map attributes,
           const troupe::kernel_options& options)
    : type_(std::move(type)), attributes_(std::move(attributes)),
      options_(options) {}

  bench_op& input(const char* slot, const shape& dims) {
    return with([=](ready_op& op) { op.input(slot, dims); });
  }

  // An image in blocks of 16 channels, as one op passes it to the next. Plain
  // if that layout does not support its shape.
  bench_op& image(const char* slot, const shape& dims) {
    return with([=](ready_op& op) { op.image(slot, dims); });
  }

  bench_op& indices(const char* slot, const shape& dims, std::int64_t end) {
    return with([=](ready_op& op) { op.indices(slot, dims, end); });
  }

  bench_op& output(const char* slot) {
    return with([=](ready_op& op) { op.output(slot); });
  }

  // Makes the variable of the last input an output too.
  bench_op& in_place(const char* slot) {
    return with([=](ready_op& op) { op.in_place(slot); });
  }

  void run(benchmark::State& state, double flop, double bytes) const {
    ready_op op(type_, attributes_, options_);
    for (const auto& add : arguments_)
      add(op);
    op.run(); // creates primitives and allocates memory
    for (auto _ : state)
      op.run();
    const auto count = static_cast<double>(state.iterations());
    if (flop > 0)
      state.counters["GFLOP/s"] =
        benchmark::Counter(flop * count * 1e-9, benchmark::Counter::kIsRate);
    if (bytes > 0)
      state.counters["GB/s"] =
        benchmark::Counter(bytes * count * 1e-9, benchmark::Counter::kIsRate);
  }

private:
  bench_op& with(std::function<void(ready_op&)> add) {
    arguments_.push_back(std::move(add));
    return *this;
  }

  std::string type_;
  attribute_map attributes_;
  troupe::kernel_options options_;
  std::vector<std::function<void(ready_op&)>> arguments_;
};

void add(const std::string& name, std::shared_ptr<bench_op> op, double flop,
         double bytes) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    op->run(state, flop, bytes);
  })->Unit(benchmark::kMicrosecond);
}

std::shared_ptr<bench_op> make(const char* type, attribute_map attributes = {},
                               precision factors = precision::float32) {
  return std::make_shared<bench_op>(type, std::move(attributes),
                                    troupe::kernel_options{.factors = factors});
}

double size(const shape& dims) {
  return static_cast<double>(dims.numel());
}

// The precisions that this processor supports.
std::vector<precision> precisions() {
  std::vector<precision> all{precision::float32};
  if (troupe::has_precision(precision::bfloat16))
    all.push_back(precision::bfloat16);
  return all;
}

std::string in(precision factors) {
  return " " + std::string(to_string(factors));
}

// out [m, n] = x [m, k] y [k, n] and both gradients.
void add_product(const char* net, std::int64_t m, std::int64_t n,
                 std::int64_t k, precision factors) {
  const double flop = 2.0 * static_cast<double>(m * n) * static_cast<double>(k);
  const std::string tail = std::string("/") + net + "/" + std::to_string(m)
                           + "x" + std::to_string(n) + "x" + std::to_string(k)
                           + in(factors);
  auto forward = make("mul", {}, factors);
  forward->input("X", {m, k}).input("Y", {k, n}).output("Out");
  add("mul" + tail, forward, flop, 0);
  for (const char* slot : {"X@GRAD", "Y@GRAD"}) {
    auto gradient = make("mul_grad", {}, factors);
    gradient->input("X", {m, k}).input("Y", {k, n}).input("Out@GRAD", {m, n});
    gradient->output(slot);
    add(std::string("mul_grad ") + slot + tail, gradient, flop, 0);
  }
}

struct convolution {
  const char* net;
  shape in;
  shape filter;
  int stride;
  int padding;
  int groups = 1;
};

void add_convolution(const convolution& c, precision factors) {
  using ints = std::vector<std::int32_t>;
  const attribute_map attributes{{"strides", ints{c.stride, c.stride}},
                                 {"paddings", ints{c.padding, c.padding}},
                                 {"groups", c.groups}};
  const auto extent = [&](std::size_t i) {
    return (c.in[i] + 2 * c.padding - c.filter[i]) / c.stride + 1;
  };
  const shape out{c.in[0], c.filter[0], extent(2), extent(3)};
  const double flop =
    2.0 * size(out) * size(c.filter) / static_cast<double>(c.filter[0]);
  const std::string tail = std::string("/") + c.net + "/" + to_string(c.in)
                           + to_string(c.filter) + "s"
                           + std::to_string(c.stride) + in(factors);
  auto forward = make("conv2d", attributes, factors);
  forward->image("Input", c.in).input("Filter", c.filter).output("Output");
  add("conv2d" + tail, forward, flop, 0);
  for (const char* slot : {"Input@GRAD", "Filter@GRAD"}) {
    auto gradient = make("conv2d_grad", attributes, factors);
    gradient->image("Input", c.in).input("Filter", c.filter);
    gradient->image("Output@GRAD", out).output(slot);
    add(std::string("conv2d_grad ") + slot + tail, gradient, flop, 0);
  }
}

void add_products() {
  for (auto factors : precisions()) {
    add_product("mlp", 64, 128, 784, factors);
    add_product("mlp", 64, 10, 128, factors);
    add_product("mlp", 64, 1024, 1024, factors);
    add_product("lenet", 64, 120, 400, factors);
    add_product("gpt", 512, 768, 768, factors);
    add_product("gpt", 512, 3072, 768, factors);
  }
  auto attention = make("matmul_v2", {{"trans_y", true}});
  attention->input("X", {8, 12, 64, 64}).input("Y", {8, 12, 64, 64});
  attention->output("Out");
  add("matmul_v2/gpt/[8, 12, 64, 64]", attention, 2.0 * 96 * 64 * 64 * 64, 0);
}

void add_convolutions() {
  const convolution all[] = {
    {"lenet", {64, 1, 28, 28}, {6, 1, 5, 5}, 1, 2},
    {"lenet", {64, 6, 14, 14}, {16, 6, 5, 5}, 1, 0},
    {"lenet", {64, 1, 28, 28}, {20, 1, 5, 5}, 1, 0},
    {"lenet", {64, 20, 12, 12}, {50, 20, 5, 5}, 1, 0},
    {"cifar", {16, 3, 32, 32}, {64, 3, 3, 3}, 1, 1},
    {"cifar", {32, 64, 32, 32}, {64, 64, 3, 3}, 1, 1},
    {"cifar", {32, 128, 16, 16}, {128, 128, 3, 3}, 1, 1},
    {"cifar", {32, 256, 8, 8}, {256, 256, 3, 3}, 1, 1},
    {"cifar", {32, 512, 4, 4}, {512, 512, 3, 3}, 1, 1},
    {"resnet", {4, 3, 224, 224}, {64, 3, 7, 7}, 2, 3},
    {"resnet", {4, 64, 56, 56}, {64, 64, 3, 3}, 1, 1},
    {"resnet", {4, 64, 56, 56}, {256, 64, 1, 1}, 1, 0},
    {"resnet", {4, 256, 56, 56}, {64, 256, 1, 1}, 1, 0},
    {"resnet", {4, 128, 28, 28}, {128, 128, 3, 3}, 1, 1},
    {"resnet", {4, 256, 14, 14}, {256, 256, 3, 3}, 1, 1},
    {"resnet", {4, 512, 7, 7}, {512, 512, 3, 3}, 1, 1},
    {"resnet", {4, 512, 28, 28}, {1024, 512, 1, 1}, 2, 0},
    {"resnet", {4, 1024, 14, 14}, {256, 1024, 1, 1}, 1, 0},
    {"resnet", {4, 256, 14, 14}, {1024, 256, 1, 1}, 1, 0},
    {"resnet", {4, 2048, 7, 7}, {512, 2048, 1, 1}, 1, 0},
    {"resnext", {4, 128, 56, 56}, {128, 4, 3, 3}, 1, 1, 32},
    {"resnext", {4, 256, 56, 56}, {256, 8, 3, 3}, 2, 1, 32},
    {"resnext", {4, 256, 28, 28}, {256, 8, 3, 3}, 1, 1, 32},
    {"resnext", {4, 512, 14, 14}, {512, 16, 3, 3}, 1, 1, 32},
    {"resnext", {4, 1024, 7, 7}, {1024, 32, 3, 3}, 1, 1, 32},
    {"resnext", {4, 1024, 14, 14}, {1024, 32, 3, 3}, 2, 1, 32},
    {"resnext", {4, 256, 56, 56}, {256, 256, 1, 1}, 1, 0},
    {"mobilenet", {4, 128, 56, 56}, {128, 1, 3, 3}, 1, 1, 128},
  };
  for (const auto& c : all)
    for (auto factors : precisions())
      add_convolution(c, factors);
}

// An op with one input and one output of shape `dims`. A gradient also reads
// Out@GRAD.
void add_map(const char* type, const shape& dims, const char* saved = "X") {
  const bool gradient = std::string(type).ends_with("_grad");
  auto op = make(type);
  op->input(saved, dims);
  if (gradient)
    op->input("Out@GRAD", dims);
  op->output(gradient ? "X@GRAD" : "Out");
  add(std::string(type) + "/" + to_string(dims), op, 0,
      (gradient ? 12.0 : 8.0) * size(dims));
}

void add_loops() {
  const shape images{16, 64, 56, 56};
  for (const shape& dims : {shape{64, 1024}, images}) {
    add_map("relu", dims);
    add_map("relu_grad", dims, "Out");
    add_map("sigmoid", dims);
    add_map("tanh", dims);
    add_map("gelu", dims);
    add_map("gelu_grad", dims);
  }
  add_map("softmax", {6144, 64});
  auto bias = make("elementwise_add", {{"axis", 1}});
  bias->input("X", images).input("Y", {64}).output("Out");
  add("elementwise_add bias", bias, 0, 8 * size(images));
  auto bias_gradient = make("elementwise_add_grad", {{"axis", 1}});
  bias_gradient->input("X", images).input("Y", {64}).input("Out@GRAD", images);
  bias_gradient->output("Y@GRAD");
  add("elementwise_add_grad bias", bias_gradient, 0, 4 * size(images));
  auto rows = make("elementwise_add_grad");
  rows->input("X", {4096, 768}).input("Y", {768});
  rows->input("Out@GRAD", {4096, 768}).output("Y@GRAD");
  add("elementwise_add_grad rows", rows, 0, 4.0 * 4096 * 768);
  auto loss = make("softmax_with_cross_entropy");
  loss->input("Logits", {512, 1000}).indices("Label", {512, 1}, 1000);
  loss->output("Softmax").output("Loss");
  add("softmax_with_cross_entropy/[512, 1000]", loss, 0, 8.0 * 512000);
  auto heads =
    make("transpose2", {{"axis", std::vector<std::int32_t>{0, 2, 1, 3}}});
  heads->input("X", {8, 64, 12, 64}).output("Out");
  add("transpose2 heads", heads, 0, 8.0 * 8 * 64 * 768);
  auto matrix = make("transpose2", {{"axis", std::vector<std::int32_t>{1, 0}}});
  matrix->input("X", {1024, 1024}).output("Out");
  add("transpose2 matrix", matrix, 0, 8.0 * 1024 * 1024);
  auto drop = make("dropout");
  drop->input("X", {4096, 768}).output("Out").output("Mask");
  add("dropout", drop, 0, 9.0 * 4096 * 768);
}

void add_layers() {
  const shape images{16, 64, 56, 56};
  using ints = std::vector<std::int32_t>;
  for (const char* kind : {"max", "avg"}) {
    const attribute_map attributes{{"pooling_type", std::string(kind)},
                                   {"ksize", ints{2, 2}},
                                   {"strides", ints{2, 2}}};
    auto pool = make("pool2d", attributes);
    pool->input("X", images).output("Out");
    add(std::string("pool2d ") + kind, pool, 0, 5 * size(images));
    auto gradient = make("pool2d_grad", attributes);
    gradient->input("X", images).input("Out", {16, 64, 28, 28});
    gradient->input("Out@GRAD", {16, 64, 28, 28}).output("X@GRAD");
    add(std::string("pool2d_grad ") + kind, gradient, 0, 10 * size(images));
  }
  auto norm = make("batch_norm");
  norm->input("X", images).input("Scale", {64}).input("Bias", {64});
  norm->input("Mean", {64}).in_place("MeanOut");
  norm->input("Variance", {64}).in_place("VarianceOut");
  norm->output("Y").output("SavedMean").output("SavedVariance");
  add("batch_norm", norm, 0, 12 * size(images));
  auto norm_gradient = make("batch_norm_grad");
  norm_gradient->input("X", images).input("Scale", {64});
  norm_gradient->input("SavedMean", {64}).input("SavedVariance", {64});
  norm_gradient->input("Y@GRAD", images).output("X@GRAD");
  norm_gradient->output("Scale@GRAD").output("Bias@GRAD");
  add("batch_norm_grad", norm_gradient, 0, 20 * size(images));
  auto rows = make("layer_norm");
  rows->input("X", {4096, 768}).input("Scale", {768}).input("Bias", {768});
  rows->output("Y").output("Mean").output("Variance");
  add("layer_norm", rows, 0, 8.0 * 4096 * 768);
  auto rows_gradient = make("layer_norm_grad");
  rows_gradient->input("X", {4096, 768}).input("Scale", {768});
  rows_gradient->input("Mean", {4096}).input("Variance", {4096});
  rows_gradient->input("Y@GRAD", {4096, 768}).output("X@GRAD");
  rows_gradient->output("Scale@GRAD").output("Bias@GRAD");
  add("layer_norm_grad", rows_gradient, 0, 12.0 * 4096 * 768);
}

void add_optimizers() {
  for (const shape& dims : {shape{1 << 14}, shape{1 << 22}}) {
    const std::string tail = "/" + to_string(dims);
    auto sgd = make("sgd");
    sgd->input("LearningRate", {1}).input("Grad", dims);
    sgd->input("Param", dims).in_place("ParamOut");
    add("sgd" + tail, sgd, 0, 12 * size(dims));
    auto momentum = make("momentum", {{"mu", 0.9f}});
    momentum->input("LearningRate", {1}).input("Grad", dims);
    momentum->input("Param", dims).in_place("ParamOut");
    momentum->input("Velocity", dims).in_place("VelocityOut");
    add("momentum" + tail, momentum, 0, 20 * size(dims));
    auto adam = make("adam");
    adam->input("LearningRate", {1}).input("Grad", dims);
    adam->input("Beta1Pow", {1}).input("Beta2Pow", {1});
    adam->input("Param", dims).in_place("ParamOut");
    adam->input("Moment1", dims).in_place("Moment1Out");
    adam->input("Moment2", dims).in_place("Moment2Out");
    add("adam" + tail, adam, 0, 28 * size(dims));
  }
}

} // namespace

int main(int argc, char** argv) {
  add_products();
  add_convolutions();
  add_loops();
  add_layers();
  add_optimizers();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

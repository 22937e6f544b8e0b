// SPDX-License-Identifier: Apache-2.0
// Filters in blocks of channels: the same numbers in another order, for
// convolutions and for the optimizers that update them.
#include <kernels/cpu/op_chain.hpp>
#include <kernels/cpu/optimizer/update_case.hpp>

#include <troupe/kernels/cpu/conv/filter_blocks.hpp>
#include <troupe/kernels/kernel_options.hpp>

#include <support/caught.hpp>
#include <support/machine.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

namespace troupe::test {

TEST_SUITE("kernels.cpu.filter_blocks") {

namespace {

/// Element by element, beside the packing that is tested.
tensor in_filter_blocks(const tensor& plain, arena& memory) {
  const shape& dims = plain.dims();
  const auto format = cpu::filter_blocks(dims);
  tensor blocks(dims, plain.type(), memory.allocate(format->bytes()), format);
  const std::int64_t taps = dims.numel(2, 4);
  for (std::int64_t o = 0; o < dims[0]; ++o)
    for (std::int64_t i = 0; i < dims[1]; ++i)
      for (std::int64_t tap = 0; tap < taps; ++tap)
        blocks
          .data<float>()[((o / 16 * (dims[1] / 16) + i / 16) * taps + tap) * 256
                         + i % 16 * 16 + o % 16] =
          plain.data<float>()[(o * dims[1] + i) * taps + tap];
  return blocks;
}

void put_in_blocks(op_chain& ops, const std::string& name) {
  static arena memory{make_host_memory_source()};
  auto& var = ops.at(name);
  var.set(in_filter_blocks(var.as_tensor(), memory));
}

bool is_in_blocks(op_chain& ops, const std::string& name) {
  return cpu::lies_in_filter_blocks(ops.at(name).as_tensor());
}

/// A convolution and its gradients; what is said of x and w in `blocks`.
struct convolution_case {
  shape x;
  shape filter;
  std::vector<std::int32_t> strides{1, 1};
  std::vector<std::int32_t> paddings{0, 0};
  precision factors = precision::float32;

  attribute_map attributes() const {
    return {{"strides", strides}, {"paddings", paddings}};
  }
  shape out() const {
    const auto extent = [&](std::size_t axis) {
      const auto a = static_cast<std::size_t>(axis - 2);
      return (x[axis] + 2 * paddings[a] - filter[axis]) / strides[a] + 1;
    };
    return {x[0], filter[0], extent(2), extent(3)};
  }
};

const convolution_case all_cases[] = {
  {{4, 64, 14, 14}, {32, 64, 1, 1}},                   // pointwise
  {{2, 32, 9, 9}, {48, 32, 3, 3}, {2, 2}, {1, 1}},     // strided
  {{2, 16, 8, 8}, {16, 16, 5, 5}, {1, 1}, {2, 2}},     // direct
  {{2, 32, 32, 32}, {32, 32, 3, 3}, {1, 1}, {1, 1}},   // Winograd's method
  {{32, 512, 4, 4}, {512, 512, 3, 3}, {1, 1}, {1, 1}}, // with few tiles
  {{2, 32, 9, 9}, {48, 32, 3, 3}, {2, 2}, {1, 1}, precision::bfloat16},
  {{4, 64, 14, 14}, {32, 64, 1, 1}, {1, 1}, {0, 0}, precision::bfloat16},
};

/// Those that this machine has the precision for.
std::vector<convolution_case> cases() {
  std::vector<convolution_case> some;
  std::ranges::copy_if(
    all_cases, std::back_inserter(some),
    [](const convolution_case& c) { return has_precision(c.factors); });
  return some;
}

struct layouts_of_case {
  bool images = true;
  bool filter = false;
  bool gradient = false; // may be in blocks
};

op_chain convolve(const convolution_case& c, const layouts_of_case& blocks) {
  op_chain ops(c.attributes(), cpu_kernels({.factors = c.factors}));
  ops.put("x", c.x);
  ops.put("w", c.filter);
  ops.put("dout", c.out());
  if (blocks.images)
    for (auto name : {"x", "dout"})
      ops.put_in_blocks(name, {16});
  if (blocks.filter)
    put_in_blocks(ops, "w");
  auto attributes = ops.attributes();
  attributes.set("filter_in_blocks", blocks.gradient);
  ops.run("conv2d", {{"Input", "x"}, {"Filter", "w"}}, {{"Output", "out"}});
  ops.run("conv2d_grad",
          {{"Input", "x"}, {"Filter", "w"}, {"Output@GRAD", "dout"}},
          {{"Input@GRAD", "dx"}, {"Filter@GRAD", "dw"}}, attributes);
  return ops;
}

void check_same(op_chain& a, op_chain& b, const std::string& name) {
  CAPTURE(name);
  CHECK(a.elements(name) == b.elements(name));
}

/// For values that two methods of convolving give.
void check_near(op_chain& a, op_chain& b, const std::string& name) {
  CAPTURE(name);
  const auto actual = a.elements(name), expected = b.elements(name);
  REQUIRE(actual.size() == expected.size());
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    largest = std::max<double>(largest, std::abs(expected[i]));
    error = std::max<double>(error, std::abs(actual[i] - expected[i]));
  }
  CHECK(error <= 1e-4 * largest);
}

} // namespace

TEST_CASE("a filter in blocks is a permutation of the plain one") {
  for (const shape& dims :
       {shape{16, 16, 1, 1}, {32, 48, 3, 3}, {48, 16, 5, 5}, {16, 32, 1, 7}}) {
    op_chain ops;
    ops.put("w", dims);
    const auto plain = ops.elements("w");
    put_in_blocks(ops, "w");
    CHECK(ops.at("w").as_tensor().bytes() == plain.size() * sizeof(float));
    CHECK(ops.elements("w") == plain);
    CHECK(ops.at("w").as_tensor().format()->equals(*cpu::filter_blocks(dims)));
  }
  CHECK_FALSE(cpu::filter_blocks({16, 32, 1, 1})
                ->equals(*cpu::filter_blocks({32, 16, 1, 1})));
}

TEST_CASE("channels fill their blocks") {
  CHECK(cpu::fits_filter_blocks({16, 32, 3, 3}));
  for (const shape& dims : {shape{16, 24, 3, 3},
                            {24, 16, 3, 3},
                            {16, 16, 7, 7},
                            {0, 16, 1, 1},
                            {16, 0, 1, 1},
                            {16, 16, 0, 1},
                            {16, 16, 3}})
    CHECK_FALSE(cpu::fits_filter_blocks(dims));
}

TEST_CASE(
  "filters and images in blocks are permutations, rounded ones are not") {
  const shape dims{16, 32, 3, 3};
  CHECK(cpu::filter_blocks(dims)->is_permutation());
  CHECK(cpu::channel_blocks(dims, {16})->is_permutation());
  CHECK_FALSE(
    cpu::channel_blocks(dims, {16, precision::bfloat16})->is_permutation());
}

TEST_CASE("convolutions read a filter as it lies, with the same bits") {
  if (!uses_avx512())
    return skip_case("needs AVX-512, which has filters in blocks");
  for (const auto& c : cases())
    for (bool images : {true, false}) {
      CAPTURE(to_string(c.filter));
      CAPTURE(images);
      auto plain = convolve(c, {.images = images});
      auto blocks = convolve(c, {.images = images, .filter = true});
      for (auto name : {"out", "dx", "dw"})
        check_same(blocks, plain, name);
      CHECK_FALSE(is_in_blocks(blocks, "dw"));
    }
}

TEST_CASE("a filter's gradient stays in blocks where the graph allows it") {
  for (const auto& c : cases()) {
    CAPTURE(to_string(c.filter));
    auto plain = convolve(c, {});
    for (bool filter : {true, false}) {
      auto blocks = convolve(c, {.filter = filter, .gradient = true});
      CHECK(is_in_blocks(blocks, "dw") == uses_avx512());
      // Without AVX-512 no gradient gives a filter blocks, and Winograd's
      // method does not read them.
      const auto check = filter && !uses_avx512() ? check_near : check_same;
      for (auto name : {"out", "dx", "dw"})
        check(blocks, plain, name);
    }
  }
}

TEST_CASE("beside plain images a filter's gradient is plain") {
  auto ops = convolve(all_cases[1], {.images = false, .gradient = true});
  CHECK_FALSE(is_in_blocks(ops, "dw"));
}

TEST_CASE("a filter of few channels has a plain gradient") {
  const convolution_case few{{2, 16, 8, 8}, {24, 16, 3, 3}};
  op_chain ops({{"filter_in_blocks", true}});
  ops.put("x", few.x);
  ops.put("w", few.filter);
  ops.put("dout", few.out());
  ops.put_in_blocks("x", {16});
  ops.run("conv2d_grad",
          {{"Input", "x"}, {"Filter", "w"}, {"Output@GRAD", "dout"}},
          {{"Filter@GRAD", "dw"}});
  CHECK_FALSE(is_in_blocks(ops, "dw"));
}

TEST_CASE("the layout of a filter's gradient follows its images") {
  convolution_case c = all_cases[1];
  attribute_map attributes = c.attributes();
  attributes.set("filter_in_blocks", true);
  const auto code =
    cpu_kernels().make("conv2d_grad", device_kind::cpu, attributes);
  op_chain ops(attributes);
  ops.put("w", c.filter);
  for (bool blocks : {false, true, false}) {
    ops.put("x", c.x);
    ops.put("dout", c.out());
    if (blocks)
      for (auto name : {"x", "dout"})
        ops.put_in_blocks(name, {16});
    ops.run(*code, {{"Input", "x"}, {"Filter", "w"}, {"Output@GRAD", "dout"}},
            {{"Filter@GRAD", "dw"}}, attributes);
    CHECK(is_in_blocks(ops, "dw") == (blocks && uses_avx512()));
  }
}

TEST_CASE(
  "optimizers leave a filter as its gradient lies, with the same bits") {
  const shape dims{32, 48, 3, 3};
  for (const auto& u : updates) {
    CAPTURE(u.type);
    auto plain = before_update(dims), blocks = before_update(dims);
    put_in_blocks(blocks, "g");
    for (int i = 0; i < 3; ++i) { // the first one finds all else plain
      step(plain, u);
      step(blocks, u);
      CHECK(is_in_blocks(blocks, "p"));
    }
    for (auto name : {"p", "a", "b"})
      check_same(blocks, plain, name);
    for (auto& [slot, name] : u.state_out)
      CHECK(is_in_blocks(blocks, name));
  }
}

TEST_CASE("a plain gradient brings a filter back to the plain layout") {
  const shape dims{32, 16, 3, 3};
  for (const auto& u : updates) {
    CAPTURE(u.type);
    auto plain = before_update(dims), blocks = before_update(dims);
    for (auto name : {"p", "a", "b"})
      put_in_blocks(blocks, name);
    step(plain, u);
    step(blocks, u);
    CHECK(blocks.at("p").as_tensor().is_plain());
    for (auto name : {"p", "a", "b"})
      check_same(blocks, plain, name);
  }
}

TEST_CASE("an update in blocks takes no new memory") {
  auto ops = before_update({32, 16, 3, 3});
  for (auto name : {"p", "g", "a", "b"})
    put_in_blocks(ops, name);
  for (const auto& u : updates) {
    const auto* before = ops.at("p").as_tensor().raw();
    step(ops, u);
    CHECK(ops.at("p").as_tensor().raw() == before);
  }
}

TEST_CASE("state of another shape than the filter is refused") {
  for (const auto& u : updates) {
    if (u.state_in.empty())
      continue;
    for (const shape& state : {shape{16, 32, 3, 3}, {16, 16, 3, 3}}) {
      auto ops = before_update({32, 16, 3, 3});
      put_in_blocks(ops, "g");
      ops.put("a", state);
      CHECK(caught([&] { step(ops, u); }).code() == errc::shape_mismatch);
    }
  }
}

TEST_CASE("an update that fails as it changes the layout loses nothing") {
  for (bool to_blocks : {true, false})
    for (const auto& u : updates) {
      CAPTURE(u.type);
      auto ops = before_update({32, 16, 3, 3});
      put_in_blocks(ops, to_blocks ? "g" : "p");
      const auto before = ops.elements("p"), state = ops.elements("a");
      ops.put("lr", {2});
      CHECK(caught([&] { step(ops, u); }).code() == errc::shape_mismatch);
      CHECK(ops.elements("p") == before);
      CHECK(ops.elements("a") == state);
    }
}

TEST_CASE("an update elsewhere leaves what it reads") {
  for (bool gradient : {true, false}) {
    auto plain = before_update({32, 16, 3, 3});
    auto blocks = before_update({32, 16, 3, 3});
    put_in_blocks(blocks, gradient ? "g" : "p");
    const auto before = plain.elements("p");
    for (auto* ops : {&plain, &blocks})
      ops->run("sgd", {{"Param", "p"}, {"Grad", "g"}, {"LearningRate", "lr"}},
               {{"ParamOut", "next"}});
    CHECK(is_in_blocks(blocks, "next") == gradient);
    check_same(blocks, plain, "next");
    CHECK(blocks.elements("p") == before);
    CHECK(plain.elements("next") != before);
  }
}

TEST_CASE("a gradient in blocks for a parameter of another shape is plain") {
  auto plain = before_update({32, 16, 3, 3});
  auto blocks = before_update({32, 16, 3, 3});
  put_in_blocks(blocks, "g");
  for (auto* ops : {&plain, &blocks}) {
    ops->put("p", {32 * 16 * 9});
    step(*ops, updates[0]);
  }
  check_same(blocks, plain, "p");
}

} // TEST_SUITE("kernels.cpu.filter_blocks")

} // namespace troupe::test

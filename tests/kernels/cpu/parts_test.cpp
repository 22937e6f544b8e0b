// SPDX-License-Identifier: Apache-2.0
// Kernels that cut their work against the same ones in one go. Sizes lie just
// above what a part takes at least, times three workers.
#include <kernels/cases/cases.hpp>
#include <kernels/cpu/blocked_images.hpp>
#include <kernels/cpu/shared_run.hpp>
#include <support/machine.hpp>
#include <support/op_compare.hpp>
#include <support/op_runner.hpp>
#include <support/skip_case.hpp>

#include <troupe/kernels/kernel_options.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("kernels.cpu.parts") {

namespace {

using ints = std::vector<std::int32_t>;

op_case unary(const char* type, const char* kept, const shape& dims,
              attribute_map attributes = {}) {
  return {.type = type,
          .inputs = {{"X", {random_values(dims, 1, -4, 4)}}},
          .attributes = std::move(attributes),
          .gradient = gradient_slots{{"Out"}, {kept}, {"X"}}};
}

op_case binary(const char* type, const shape& x, const shape& y,
               int axis = -1) {
  return {.type = type,
          .inputs = {{"X", {random_values(x, 1, 0.5, 2)}},
                     {"Y", {random_values(y, 2, 0.5, 2)}}},
          .attributes = {{"axis", axis}}};
}

op_case sum_of_two(const shape& dims) {
  return {.type = "sum",
          .inputs = {{"X", {random_values(dims, 1), random_values(dims, 2)}}}};
}

op_case transpose(const shape& dims, ints axes) {
  return {.type = "transpose2",
          .inputs = {{"X", {random_values(dims, 1)}}},
          .attributes = {{"axis", std::move(axes)}},
          .outputs = {{"Out", 1}, {"XShape", 1}}};
}

op_case drawn(const char* type, const ints& dims,
              attribute_map attributes = {}) {
  attributes.set("shape", dims);
  return {.type = type, .inputs = {}, .attributes = std::move(attributes)};
}

op_case layer_norm(std::int64_t rows, std::int64_t width) {
  return {.type = "layer_norm",
          .inputs = {{"X", {random_values({rows, width}, 1, -1, 3)}},
                     {"Scale", {random_values({width}, 2, 0.5, 2)}},
                     {"Bias", {random_values({width}, 3)}}},
          .attributes = {{"begin_norm_axis", 1}},
          .outputs = {{"Y", 1}, {"Mean", 1}, {"Variance", 1}},
          .gradient = gradient_slots{{"Y"},
                                     {"X", "Scale", "Bias", "Mean", "Variance"},
                                     {"X", "Scale", "Bias"}}};
}

op_case max_pool(const shape& dims) {
  return {.type = "pool2d",
          .inputs = {{"X", {random_values(dims, 1)}}},
          .attributes = {{"pooling_type", std::string("max")},
                         {"ksize", ints{2, 2}},
                         {"strides", ints{2, 2}}},
          .gradient = gradient_slots{{"Out"}, {"X", "Out"}, {"X"}}};
}

/// `count` rows of [0, height), each of them several times.
std::vector<std::int64_t> ids_with_repeats(std::int64_t count,
                                           std::int64_t height) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < count; ++i)
    ids.push_back(i * 7919 % height);
  return ids;
}

op_case norm_and_relu(const shape& dims) {
  auto c = batch_norm_case(dims);
  c.type = "fused_batch_norm_act";
  return c;
}

op_case norm_add_and_relu(const shape& dims) {
  auto c = batch_norm_case(dims);
  c.type = "fused_bn_add_activation";
  c.inputs["Z"] = {random_values(dims, 6)};
  c.gradient->kept.push_back("Y");
  c.gradient->wanted.push_back("Z");
  return c;
}

op_case norm_and_relu_again(const shape& dims) {
  const shape channels{dims[1]};
  return {.type = "recompute_batch_norm_act",
          .inputs = {{"X", {random_values(dims, 1)}},
                     {"Scale", {random_values(channels, 2, 0.5, 2)}},
                     {"Bias", {random_values(channels, 3)}},
                     {"SavedMean", {random_values(channels, 4)}},
                     {"SavedVariance", {random_values(channels, 5, 0.5, 2)}}},
          .outputs = {{"Y", 1}}};
}

op_case mul(const shape& x, const shape& y) {
  return {
    .type = "mul",
    .inputs = {{"X", {random_values(x, 1)}}, {"Y", {random_values(y, 2)}}},
    .gradient = gradient_slots{{"Out"}, {"X", "Y"}, {"X", "Y"}}};
}

op_case matmul(const shape& x, const shape& y, bool transpose_x = false,
               bool transpose_y = false) {
  auto c = mul(x, y);
  c.type = "matmul_v2";
  c.attributes = {{"trans_x", transpose_x}, {"trans_y", transpose_y}};
  return c;
}

} // namespace

TEST_CASE("unary ops in parts give the bits of the whole") {
  const shape dims{99, 1001}; // the parts and the whole end in half vectors
  check_both(plain(), unary("gelu", "X", dims), same_bits);
  check_both(plain(), unary("gelu", "X", dims, {{"approximate", true}}),
             same_bits);
  check_both(plain(), unary("relu", "Out", dims), same_bits);
  check_both(plain(), unary("tanh", "Out", dims), same_bits);
  check_both(plain(), unary("exp", "Out", dims), same_bits);
  check_both(plain(), with_float_type(unary("gelu", "X", dims), dtype::float64),
             same_bits);
  check_both(blocked(), unary("relu", "Out", {5, 48, 21, 21}), same_bits);
}

TEST_CASE("two parts are taken where there is not enough for three") {
  const auto c = unary("relu", "Out", {97, 1001});
  shared_run shared(plain(), c);
  shared.run(c);
  CHECK(shared.most_parts() == 2);
}

TEST_CASE("little work stays whole") {
  for (const auto& c :
       {unary("gelu", "X", {65, 1000}), binary("elementwise_add", {9}, {9}),
        layer_norm(8, 64), mul({64, 64}, {64, 64}), batch_norm_case({2, 4, 3})})
    check_whole(plain(), c);
}

TEST_CASE("binary ops in parts give the bits of the whole") {
  for (const char* type : {"elementwise_add", "elementwise_div"}) {
    const auto check = [&](const shape& x, const shape& y, int axis = -1) {
      check_op(plain(), binary(type, x, y, axis), same_bits);
    };
    check({99, 1001}, {99, 1001});
    check({99, 1001}, {1001});          // a row
    check({99, 1001}, {99, 1});         // a column
    check({99, 1001}, {1});             // a number
    check({17, 33, 177}, {33}, 1);      // an axis in the middle
    check({17, 33, 177}, {17, 33}, 0);  // the first axes
    check({17, 33, 177}, {17, 1, 177}); // the outer axes
    check({99, 1}, {99, 1001});         // the first operand repeats
    check({1, 33, 177}, {17, 33, 1});   // both do
  }
  check_op(plain(), binary("elementwise_pow", {99, 1001}, {99, 1001}),
           same_bits);
  check_op(plain(),
           with_float_type(binary("elementwise_mul", {99, 1001}, {1001}),
                           dtype::float64),
           same_bits);
  check_op(blocked(),
           binary("elementwise_add", {5, 48, 21, 21}, {5, 48, 21, 21}),
           same_bits);
}

TEST_CASE("scaled numbers and sums of images in parts are those of the whole") {
  auto c = unary("scale", "X", {99, 1001}, {{"scale", 1.7f}, {"bias", 0.3f}});
  check_op(plain(), c, same_bits);
  check_op(blocked(), sum_of_two({5, 48, 21, 21}), same_bits);
}

TEST_CASE("updates in place in parts give the bits of the whole") {
  for (auto c :
       {unary("relu", "Out", {99, 1001}), unary("softmax", "Out", {99, 1001}),
        binary("elementwise_add", {99, 1001}, {1001})}) {
    c.in_place = {{"Out", "X"}};
    check_op(plain(), c, same_bits);
  }
}

TEST_CASE("softmax in parts gives the bits of the whole") {
  for (const char* type : {"softmax", "log_softmax"}) {
    check_both(plain(), unary(type, "Out", {99, 1001}), same_bits);
    check_both(plain(), unary(type, "Out", {17, 33, 177}, {{"axis", 1}}),
               same_bits);
  }
}

TEST_CASE("layer normalisation in parts gives the bits of the whole") {
  check_both(plain(), layer_norm(130, 769), same_bits);
}

TEST_CASE("transposed tensors in parts are those of the whole") {
  check_op(plain(), transpose({5, 17, 19, 64}, {0, 2, 1, 3}), same_bits);
  check_op(plain(), transpose({1, 41, 40, 64}, {0, 2, 1, 3}), same_bits);
  check_op(plain(), transpose({7, 13, 33, 35}, {0, 1, 3, 2}), same_bits);
  check_op(
    plain(),
    with_float_type(transpose({5, 17, 19, 64}, {2, 0, 1, 3}), dtype::float64),
    same_bits);
}

TEST_CASE("pooled images in parts are those of the whole") {
  if (!has_own_loops())
    return skip_case("needs AVX2");
  check_both(plain(), max_pool({5, 23, 30, 30}), same_bits);
}

TEST_CASE("pooled images in blocks are cut, too") {
  const auto rounded =
    with_rounded_inputs(cpu_kernels(), {16, precision::bfloat16});
  for (const auto* table : {&blocked(), &rounded})
    for (const char* type : {"max", "avg"}) {
      auto c = max_pool({5, 48, 30, 30});
      c.attributes.set("pooling_type", std::string(type));
      c.attributes.set("paddings", ints{1, 1});
      check_both(*table, c, same_bits);
    }
}

TEST_CASE("batch normalisation in parts gives the bits of the whole") {
  auto fixed = batch_norm_case({7, 37, 20, 20}, {{"is_test", true}});
  fixed.outputs.erase("SavedMean");
  fixed.outputs.erase("SavedVariance");
  check_op(plain(), fixed, same_bits);
  check_both(plain(), batch_norm_case({7, 37, 20, 20}), same_bits);
  check_both(blocked(), batch_norm_case({5, 48, 21, 21}), same_bits);
}

TEST_CASE("fused normalisation in parts gives the bits of the whole") {
  for (const auto make : {norm_and_relu, norm_add_and_relu}) {
    check_both(plain(), make({7, 37, 20, 20}), same_bits);
    check_both(blocked(), make({5, 48, 21, 21}), same_bits);
    // Fewer blocks of channels than workers.
    check_both(blocked(), make({7, 32, 23, 23}), same_bits);
  }
  check_op(plain(), norm_and_relu_again({7, 37, 20, 20}), same_bits);
  for (const auto& dims : {shape{5, 48, 21, 21}, shape{7, 32, 23, 23}})
    check_op(blocked(), norm_and_relu_again(dims), same_bits);
}

TEST_CASE("parameters that are updated in parts get the bits of the whole") {
  const shape dims{500, 211};
  for (const auto& c : update_cases(dims, random_values(dims, 4)))
    check_op(plain(), c, same_bits);
  // Rows that come twice and those beside cuts.
  const auto rows = random_rows(dims, {499, 0, 166, 167, 3, 166, 334, 333}, 4);
  for (const auto& c : update_cases(dims, rows))
    if (c.type != "sgd" && !c.attributes.get_bool("lazy_mode", false))
      check_op(plain(), c, same_bits);
  const auto many = random_rows(dims, ids_with_repeats(3000, 500), 4);
  check_op(plain(), update_cases(dims, many).front(), same_bits); // sgd
}

TEST_CASE("values that are joined and split in parts are those of the whole") {
  const auto part = [](std::int64_t extent, std::uint64_t seed) {
    return random_values({331, extent, 2}, seed);
  };
  check_both(plain(),
             {.type = "concat",
              .inputs = {{"X", {part(151, 1), part(160, 2)}}},
              .attributes = {{"axis", 1}},
              .gradient = gradient_slots{{"Out"}, {"X"}, {"X"}}},
             same_bits);
  check_op(plain(),
           {.type = "split",
            .inputs = {{"X", {part(311, 3)}}},
            .attributes = {{"axis", 1}, {"sections", ints{151, 160}}},
            .outputs = {{"Out", 2}}},
           same_bits);
}

TEST_CASE(
  "rows of a table that are looked up in parts are those of the whole") {
  const auto lookup = [](std::int64_t width) {
    return op_case{.type = "lookup_table_v2",
                   .inputs = {{"W", {random_values({5000, width}, 1)}},
                              {"Ids", {random_indices({5003}, 2, 0, 5000)}}},
                   .attributes = {{"padding_idx", 7}}};
  };
  check_op(plain(), lookup(1), same_bits);
  check_op(plain(), lookup(40), same_bits);
}

TEST_CASE("random numbers in parts are those of the whole") {
  const ints dims{101, 1003};
  for (const auto& c :
       {drawn("uniform_random", dims), drawn("gaussian_random", dims),
        drawn("truncated_gaussian_random", dims),
        drawn("randint", dims, {{"low", 3}, {"high", 90}})})
    check_op(plain(), c, same_bits);
}

TEST_CASE("losses of classes in parts give the bits of the whole") {
  const auto loss = [](const shape& logits, op_value label,
                       attribute_map attributes) {
    return op_case{
      .type = "softmax_with_cross_entropy",
      .inputs = {{"Logits", {random_values(logits, 1, 0.1, 2)}},
                 {"Label", {std::move(label)}}},
      .attributes = std::move(attributes),
      .outputs = {{"Softmax", 1}, {"Loss", 1}},
      .gradient = gradient_slots{{"Loss"}, {"Label", "Softmax"}, {"Logits"}}};
  };
  for (const bool use_softmax : {true, false}) {
    const attribute_map hard{{"use_softmax", use_softmax}};
    check_both(plain(),
               loss({331, 301}, random_indices({331, 1}, 2, 0, 301), hard),
               same_bits);
    const attribute_map soft{
      {"use_softmax", use_softmax}, {"soft_label", true}, {"axis", 1}};
    check_both(plain(),
               loss({37, 90, 31}, random_values({37, 90, 31}, 2, 0, 1), soft),
               same_bits);
  }
}

TEST_CASE("products in parts are near the whole's") {
  check_each(plain(), mul({160, 210}, {210, 130}), near); // more rows
  check_each(plain(), mul({130, 210}, {210, 160}), near); // more columns
  check_op(plain(), mul({2, 300}, {300, 6000}), near);
  for (const bool x : {false, true})
    for (const bool y : {false, true}) {
      const auto large = [&](std::int64_t m, std::int64_t n) {
        return matmul(x ? shape{150, m} : shape{m, 150},
                      y ? shape{n, 150} : shape{150, n}, x, y);
      };
      check_each(plain(), large(190, 131), near);
      check_each(plain(), large(131, 190), near);
      const auto heads =
        matmul(x ? shape{2, 4, 64, 100} : shape{2, 4, 100, 64},
               y ? shape{2, 4, 70, 64} : shape{2, 4, 64, 70}, x, y);
      check_each(plain(), heads, near);
    }
}

TEST_CASE("products of few batches are cut themselves") {
  check_each(plain(), matmul({2, 160, 150}, {2, 150, 170}), near);
  check_each(plain(), matmul({2, 150, 160}, {2, 170, 150}, true, true), near);
}

TEST_CASE("products with a factor that repeats are near the whole's") {
  check_each(plain(), matmul({8, 100, 64}, {64, 80}), near);
  check_each(plain(), matmul({5, 128, 200}, {128, 140}, true), near);
  check_each(plain(), matmul({2, 3, 140, 150}, {3, 150, 160}), near);
  check_each(plain(), matmul({140, 150}, {4, 150, 160}), near);
}

TEST_CASE("products of other dtypes are near the whole's") {
  check_each(plain(),
             with_float_type(mul({160, 210}, {210, 130}), dtype::float64),
             near);
}

// Parts of few multiplications are not rounded where the whole is.
TEST_CASE("rounded products in parts are near the whole's") {
  if (!has_precision(precision::bfloat16))
    return skip_case("needs bfloat16");
  const auto rounding = cpu_kernels({.factors = precision::bfloat16});
  check_each(rounding, mul({192, 256}, {256, 144}), 6e-3);
  check_each(rounding, matmul({2, 4, 100, 120}, {2, 4, 120, 70}), 6e-3);
}

TEST_CASE("a product takes one batch after the other in parts") {
  const sizes some{7, 1, 12, 2, 7};
  check_batches(
    plain(),
    [](auto n) {
      return mul({32 * n, 210}, {210, 130});
    },
    some);
  check_batches(
    plain(),
    [](auto n) {
      return matmul({n, 100, 64}, {n, 64, 80});
    },
    some);
}

} // TEST_SUITE("kernels.cpu.parts")

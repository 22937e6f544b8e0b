// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

#include <utility>

namespace troupe::test {

namespace {

constexpr std::int64_t channels = 16;
const shape small{2, channels, 5, 3};

op_case unary(const std::string& type, const std::string& kept,
              attribute_map attributes = {}) {
  return {.type = type,
          .inputs = {{"X", {random_values(small, 1)}}},
          .attributes = std::move(attributes),
          .gradient = gradient_slots{{"Out"}, {kept}, {"X"}}};
}

op_case binary(const std::string& type, const shape& y, int axis = -1) {
  return {.type = type,
          .inputs = {{"X", {random_values(small, 1)}},
                     {"Y", {random_values(y, 2, 0.5, 1)}}},
          .attributes = {{"axis", axis}},
          .gradient = gradient_slots{{"Out"}, {"X", "Y"}, {"X", "Y"}}};
}

/// As wide as there are channels: axis tells what Y goes with.
op_case by_column() {
  auto c = binary("elementwise_add", {channels});
  c.inputs["X"] = {random_values({2, channels, 3, channels}, 1)};
  return c;
}

op_case sum(std::size_t terms) {
  op_case c{.type = "sum", .inputs = {{"X", {}}}};
  for (std::size_t i = 0; i < terms; ++i)
    c.inputs["X"].push_back(random_values(small, i));
  return c;
}

op_case pool(const shape& x, const std::string& type, attribute_map more) {
  more.set("pooling_type", type);
  return {.type = "pool2d",
          .inputs = {{"X", {random_indices(x, 3, 0, 9, dtype::float32)}}},
          .attributes = std::move(more),
          .gradient = gradient_slots{{"Out"}, {"X", "Out"}, {"X"}}};
}

void add_pools(std::vector<op_case>& all, const std::string& type) {
  const shape odd{2, channels, 7, 6};
  const auto with = [&](attribute_map attributes) {
    all.push_back(pool(odd, type, std::move(attributes)));
  };
  with({{"ksize", ints{2, 2}}, {"strides", ints{2, 2}}});
  with(
    {{"ksize", ints{3, 3}}, {"strides", ints{2, 2}}, {"paddings", ints{1, 1}}});
  with({{"ksize", ints{3, 3}},
        {"strides", ints{2, 2}},
        {"paddings", ints{1, 1}},
        {"exclusive", false},
        {"ceil_mode", true}});
  with({{"ksize", ints{4, 4}}, {"adaptive", true}});
  with({{"ksize", ints{1, 1}}, {"global_pooling", true}});
}

op_case conv(const shape& input, const shape& filter, int stride, int padding,
             int groups = 1) {
  return {.type = "conv2d",
          .inputs = {{"Input", {random_values(input, 1)}},
                     {"Filter", {random_values(filter, 2)}}},
          .attributes = {{"strides", ints{stride, stride}},
                         {"paddings", ints{padding, padding}},
                         {"groups", groups}},
          .outputs = {{"Output", 1}},
          .gradient = gradient_slots{
            {"Output"}, {"Input", "Filter"}, {"Input", "Filter"}}};
}

op_case batch_norm(attribute_map attributes) {
  return batch_norm_case({3, channels, 19, 17}, std::move(attributes));
}

/// With the running statistics, which then take the place of saved ones.
op_case fixed_batch_norm() {
  auto c = batch_norm({{"is_test", true}});
  c.outputs.erase("SavedMean");
  c.outputs.erase("SavedVariance");
  c.gradient->kept = {"X", "Scale", "Bias", "Mean", "Variance"};
  return c;
}

} // namespace

std::vector<op_case> image_cases() {
  std::vector<op_case> all{
    unary("relu", "Out"),
    unary("gelu", "X"),
    unary("scale", "X", {{"scale", 2.0f}}),
    binary("elementwise_add", small),
    binary("elementwise_add", {channels}, 1),
    binary("elementwise_add", {3}),
    by_column(),
    binary("elementwise_sub", small),
    binary("elementwise_mul", small),
    sum(1),
    sum(2),
    sum(3),
    conv({2, 16, 14, 14}, {32, 16, 3, 3}, 1, 1),
    conv({2, 16, 9, 7}, {16, 16, 3, 3}, 2, 1),
    conv({2, 16, 6, 5}, {32, 16, 1, 1}, 1, 0),
    conv({2, 16, 6, 5}, {20, 16, 1, 1}, 2, 0),
    conv({2, 32, 8, 8}, {32, 8, 3, 3}, 1, 1, 4),
    conv({2, 32, 3, 8}, {32, 4, 3, 3}, 1, 1, 8),
    conv({2, 48, 5, 13}, {48, 4, 3, 3}, 1, 1, 12),
    conv({2, 32, 4, 6}, {32, 4, 3, 3}, 1, 1, 8),
    conv({2, 32, 6, 10}, {32, 4, 3, 3}, 1, 0, 8),
    conv({1, 3, 12, 12}, {16, 3, 7, 7}, 2, 3),
    batch_norm({}),
    fixed_batch_norm(),
  };
  all[2].gradient.reset();
  add_pools(all, "max");
  add_pools(all, "avg");
  return all;
}

} // namespace troupe::test

// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

namespace troupe::test {

namespace {

struct options {
  ints strides = {1, 1};
  ints paddings = {0, 0};
  ints dilations = {1, 1};
  int groups = 1;
  std::string padding_algorithm = "EXPLICIT";
};

op_case conv(const shape& input, const shape& filter, const options& o = {},
             const std::string& type = "conv2d") {
  return {.type = type,
          .inputs = {{"Input", {random_values(input, 1)}},
                     {"Filter", {random_values(filter, 2)}}},
          .attributes = {{"strides", o.strides},
                         {"paddings", o.paddings},
                         {"dilations", o.dilations},
                         {"groups", o.groups},
                         {"padding_algorithm", o.padding_algorithm},
                         {"data_format", "NCHW"}},
          .outputs = {{"Output", 1}},
          .gradient = gradient_slots{
            {"Output"}, {"Input", "Filter"}, {"Input", "Filter"}}};
}

op_case depthwise(const shape& input, const shape& filter, options o = {}) {
  o.groups = static_cast<int>(input[1]);
  return conv(input, filter, o, "depthwise_conv2d");
}

} // namespace

std::vector<op_case> conv2d_cases() {
  return {
    conv({2, 3, 5, 6}, {4, 3, 3, 3}, {.paddings = {1, 1}}),
    conv({1, 1, 1, 1}, {1, 1, 1, 1}),
    conv({2, 3, 4, 5}, {5, 3, 1, 1}),
    conv({2, 3, 5, 4}, {2, 3, 1, 1}, {.strides = {2, 2}}),
    conv({1, 2, 5, 4}, {3, 2, 5, 4}),
    conv({2, 2, 7, 5}, {3, 2, 3, 2}, {.strides = {2, 1}}),
    conv({1, 2, 6, 6}, {2, 2, 3, 3}, {.strides = {3, 2}, .paddings = {2, 1}}),
    conv({1, 2, 5, 6}, {3, 2, 3, 3}, {.paddings = {1, 0, 2, 1}}),
    conv({1, 2, 7, 7}, {2, 2, 3, 3}, {.paddings = {2, 2}, .dilations = {2, 2}}),
    conv({1, 2, 7, 8}, {2, 2, 2, 3}, {.dilations = {3, 2}}),
    conv({2, 6, 4, 4}, {6, 2, 3, 3}, {.paddings = {1, 1}, .groups = 3}),
    conv({1, 4, 4, 4}, {2, 2, 3, 3}, {.strides = {2, 2}, .groups = 2}),
    conv({1, 2, 5, 6}, {2, 2, 3, 2},
         {.strides = {2, 2}, .padding_algorithm = "SAME"}),
    conv({1, 2, 5, 5}, {2, 2, 2, 4},
         {.dilations = {2, 2}, .padding_algorithm = "SAME"}),
    conv({1, 2, 5, 5}, {2, 2, 3, 3},
         {.paddings = {2, 2}, .padding_algorithm = "VALID"}),
    conv({0, 3, 5, 5}, {4, 3, 3, 3}, {.paddings = {1, 1}}),
    depthwise({2, 4, 5, 5}, {4, 1, 3, 3}, {.paddings = {1, 1}}),
    depthwise({1, 3, 6, 5}, {6, 1, 3, 3},
              {.strides = {2, 2}, .paddings = {1, 1}}),
    depthwise({1, 3, 7, 7}, {3, 1, 3, 3}, {.dilations = {2, 2}}),
    depthwise({1, 2, 5, 5}, {2, 1, 3, 3},
              {.strides = {2, 2}, .padding_algorithm = "SAME"}),
    forward_only(conv({2, 16, 14, 14}, {32, 16, 3, 3}, {.paddings = {1, 1}})),
    forward_only(conv({1, 3, 32, 32}, {16, 3, 7, 7},
                      {.strides = {2, 2}, .paddings = {3, 3}})),
    forward_only(conv({3, 17, 9, 11}, {13, 17, 1, 1})),
    // Filters that fill blocks of channels, with up to 25 taps and more.
    forward_only(conv({2, 32, 6, 5}, {48, 32, 1, 1})),
    forward_only(conv({1, 32, 9, 8}, {16, 32, 5, 3}, {.strides = {2, 1}})),
    forward_only(conv({1, 16, 9, 9}, {16, 16, 7, 7}, {.paddings = {3, 3}})),
    forward_only(
      conv({2, 32, 8, 8}, {32, 8, 3, 3}, {.paddings = {1, 1}, .groups = 4})),
    forward_only(depthwise({2, 32, 9, 9}, {32, 1, 3, 3}, {.paddings = {1, 1}})),
    forward_only(conv({4, 1, 28, 28}, {6, 1, 5, 5})),
    forward_only(conv({17, 3, 12, 12}, {7, 3, 5, 5})),
    conv({1, 2, 4, 9}, {6, 2, 3, 2}),
    conv({1, 2, 4, 9}, {6, 2, 3, 2}, {.paddings = {1, 0}}),
    conv({1, 2, 4, 7}, {6, 2, 3, 2}, {.paddings = {0, 1}}),
  };
}

} // namespace troupe::test

// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

namespace troupe::test {

namespace {

const gradient_slots of_x_and_y{{"Out"}, {"X", "Y"}, {"X", "Y"}};

op_case mul(const shape& x, const shape& y, int x_dims = 1, int y_dims = 1) {
  return {
    .type = "mul",
    .inputs = {{"X", {random_values(x, 1)}}, {"Y", {random_values(y, 2)}}},
    .attributes = {{"x_num_col_dims", x_dims}, {"y_num_col_dims", y_dims}},
    .gradient = of_x_and_y};
}

op_case matmul(const shape& x, const shape& y, bool trans_x = false,
               bool trans_y = false) {
  return {
    .type = "matmul_v2",
    .inputs = {{"X", {random_values(x, 1)}}, {"Y", {random_values(y, 2)}}},
    .attributes = {{"trans_x", trans_x}, {"trans_y", trans_y}},
    .gradient = of_x_and_y};
}

} // namespace

std::vector<op_case> matmul_cases() {
  return {
    mul({3, 4}, {4, 5}),
    mul({1, 1}, {1, 1}),
    mul({7, 1}, {1, 9}),
    mul({1, 9}, {9, 1}),
    mul({2, 3, 4}, {12, 5}),
    mul({2, 3, 4}, {4, 5}, 2),
    mul({3, 4}, {2, 2, 5}, 1, 2),
    mul({3, 2, 2}, {2, 2, 5, 2}, 1, 2),
    mul({0, 4}, {4, 5}),
    forward_only(mul({65, 129}, {129, 33})),
    forward_only(mul({32, 784}, {784, 10})),
    matmul({3, 4}, {4, 5}),
    matmul({4, 3}, {4, 5}, true),
    matmul({3, 4}, {5, 4}, false, true),
    matmul({4, 3}, {5, 4}, true, true),
    matmul({1, 1}, {1, 1}),
    matmul({2, 3, 4}, {2, 4, 5}),
    matmul({2, 3, 4, 2}, {2, 3, 2, 3}),
    matmul({2, 2, 4, 3}, {2, 2, 5, 4}, true, true),
    matmul({2, 2, 3, 4}, {2, 2, 5, 4}, false, true),
    matmul({2, 2, 4, 3}, {2, 2, 4, 5}, true, false),
    matmul({2, 3, 4}, {4, 5}),
    matmul({3, 4}, {2, 4, 5}),
    matmul({2, 1, 3, 4}, {5, 4, 2}),
    matmul({4}, {4}),
    matmul({3, 4}, {4}),
    matmul({4}, {4, 5}),
    matmul({2, 3, 4}, {4}),
    matmul({4}, {2, 4, 3}),
    matmul({0, 3, 4}, {4, 5}),
    forward_only(matmul({2, 3, 17, 33}, {2, 3, 33, 9})),
    forward_only(matmul({65, 40}, {31, 40}, false, true)),
  };
}

} // namespace troupe::test

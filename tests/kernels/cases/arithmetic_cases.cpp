// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

namespace troupe::test {

namespace {

op_case of_x(const std::string& type, std::vector<op_value> x,
             attribute_map attributes = {}) {
  return {.type = type,
          .inputs = {{"X", std::move(x)}},
          .attributes = std::move(attributes)};
}

op_case scale(op_value x, float factor, float bias, bool bias_after) {
  return of_x(
    "scale", {std::move(x)},
    {{"scale", factor}, {"bias", bias}, {"bias_after_scale", bias_after}});
}

op_case in_place(op_case c) {
  c.in_place = {{"Out", "X"}};
  return c;
}

/// Numbers of Paddle's VarType.Type.
constexpr int paddle_bool = 0, paddle_int32 = 2, paddle_int64 = 3,
              paddle_float16 = 4, paddle_float32 = 5, paddle_float64 = 6,
              paddle_uint8 = 20, paddle_bfloat16 = 22;

op_case cast(op_value x, int in, int out) {
  return of_x("cast", {std::move(x)}, {{"in_dtype", in}, {"out_dtype", out}});
}

void add_casts(std::vector<op_case>& all) {
  const auto reals = random_values({3, 7}, 1, -100, 100);
  const auto integers = random_indices({3, 7}, 2, 0, 100);
  for (int out : {paddle_bool, paddle_int32, paddle_int64, paddle_float16,
                  paddle_float32, paddle_float64, paddle_bfloat16}) {
    all.push_back(cast(reals, paddle_float32, out));
    all.push_back(cast(integers, paddle_int64, out));
  }
  all.push_back(cast(integers, paddle_int64, paddle_uint8));
  all.push_back(cast(random_values({0, 3}, 1), paddle_float32, paddle_int64));
}

void add_sums(std::vector<op_case>& all) {
  const shape dims{6, 3};
  const auto a = random_values(dims, 1), b = random_values(dims, 2),
             c = random_values(dims, 3);
  const auto rows = random_rows(dims, {4, 1, 4}, 4);
  const auto more = random_rows(dims, {0, 4}, 5);
  const auto none = random_rows(dims, {}, 6);
  all.insert(
    all.end(),
    {
      of_x("sum", {a}),
      of_x("sum", {a, b}),
      of_x("sum", {a, b, c}),
      in_place(of_x("sum", {a, b, c})),
      of_x("sum", {rows}),
      of_x("sum", {rows, more}),
      of_x("sum", {rows, none, more}),
      of_x("sum", {a, rows}),
      of_x("sum", {rows, a, more}),
      of_x("sum", {random_values({0, 3}, 1), random_values({0, 3}, 2)}),
      of_x("sum", {random_values({31, 65}, 1), random_values({31, 65}, 2)}),
    });
}

} // namespace

std::vector<op_case> arithmetic_cases() {
  const auto x = random_values({3, 5}, 1);
  std::vector<op_case> all = {
    scale(x, 2.5f, 0.0f, true),
    scale(x, 2.5f, -1.0f, true),
    scale(x, 2.5f, -1.0f, false),
    scale(random_values({1}, 1), 0.0f, 3.0f, true),
    scale(random_values({0, 3}, 1), 2.0f, 1.0f, true),
    scale(random_values({33, 129}, 1), -0.5f, 0.0f, true),
    scale(random_rows({6, 3}, {4, 1, 4}, 1), 0.5f, 0.0f, true),
    in_place(scale(x, 2.0f, 1.0f, true)),
    of_x("assign", {x}),
    of_x("assign", {random_indices({4, 1}, 1, 0, 9)}),
    of_x("assign", {random_rows({6, 3}, {4, 1, 4}, 1)}),
    of_x("assign", {random_values({0, 3}, 1)}),
  };
  add_sums(all);
  add_casts(all);
  return all;
}

} // namespace troupe::test

// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>
#include <kernels/cpu/against_reference.hpp>
#include <kernels/cuda/cuda_rig.hpp>
#include <support/caught.hpp>
#include <support/op_compare.hpp>
#include <support/op_runner.hpp>

#include <troupe/kernels/cuda/cuda_kernels.hpp>
#include <troupe/kernels/kernel.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

TEST_SUITE("kernels.cuda.bodies") {

namespace {

/// True if the kernels for CUDA devices say that they do not support the case:
/// they take float32, and work along the last axis.
bool is_refused(const error& e) {
  return e.code() == errc::unsupported_op || e.code() == errc::dtype_mismatch;
}

/// Runs cases on the first device of a driver and compares with the reference.
class comparison {
public:
  explicit comparison(std::uint64_t seed = 1)
    : device_(make_cuda_devices(make_test_driver(seed), 1).front()) {}

  void check(const op_case& c) {
    if (!kernels_.has(c.type, device_kind::cuda))
      return;
    op_values found;
    try {
      found = run_op(kernels_, c, device_);
    } catch (const error& e) {
      CHECK_MESSAGE(is_refused(e), describe(c) << ": " << e.what());
      refused_.insert(c.type);
      return;
    }
    const auto wanted = run_op(known_kernels(c.type), c);
    CHECK_MESSAGE(difference(found, wanted, reference_tolerance) == "",
                  describe(c));
    covered_.insert(c.type);
    if (c.gradient)
      check(backward_of(c, wanted));
  }
  void check_all(const std::vector<op_case>& cases) {
    for (auto& c : cases)
      check(c);
  }
  const std::set<std::string>& covered() const { return covered_; }
  op_values run(const op_case& c) { return run_op(kernels_, c, device_); }

private:
  // The CPU's kernels agree with Paddle's.
  const kernel_table& known_kernels(const std::string& type) const {
    return reference_.has(type, device_kind::cpu) ? reference_ : on_cpu_;
  }

  kernel_table kernels_ = cuda::cuda_kernels();
  kernel_table reference_ = reference_kernels();
  kernel_table on_cpu_ = cpu_kernels();
  std::shared_ptr<device> device_;
  std::set<std::string> covered_;
  std::set<std::string> refused_;
};

op_case constant(const shape& dims, float value, int type) {
  std::vector<std::int64_t> extents(dims.begin(), dims.end());
  return {
    .type = "fill_constant",
    .inputs = {},
    .attributes = {{"shape", extents}, {"value", value}, {"dtype", type}}};
}

op_case range(dtype type, double start, double end, double step) {
  return {.type = "range",
          .inputs = {{"Start", {values_of({1}, {start}, type)}},
                     {"End", {values_of({1}, {end}, type)}},
                     {"Step", {values_of({1}, {step}, type)}}}};
}

op_case triangle(const op_value& x, bool lower, int diagonal) {
  return {.type = "tril_triu",
          .inputs = {{"X", {x}}},
          .attributes = {{"lower", lower}, {"diagonal", diagonal}},
          .gradient = gradient_slots{{"Out"}, {}, {"X"}}};
}

op_case sigmoid_loss(const shape& dims) {
  auto labels = random_indices(dims, 2, 0, 3, dtype::float32);
  return {
    .type = "sigmoid_cross_entropy_with_logits",
    .inputs = {{"X", {random_values(dims, 1, -40, 40)}}, {"Label", {labels}}},
    .attributes = {{"ignore_index", 2}},
    .gradient = gradient_slots{{"Out"}, {"X", "Label"}, {"X"}}};
}

op_case pairs(const char* type, const shape& x, const shape& y, int axis) {
  return {.type = type,
          .inputs = {{"X", {random_values(x, 1)}},
                     {"Y", {random_values(y, 2, 0.5, 2)}}},
          .attributes = {{"axis", axis}},
          .gradient = gradient_slots{{"Out"}, {"X", "Y"}, {"X", "Y"}}};
}

op_case of_x(const char* type, const op_value& x, gradient_slots gradient) {
  return {.type = type, .inputs = {{"X", {x}}}, .gradient = gradient};
}

/// Cases of ops that have no reference kernel, and of dtypes that the common
/// cases lack.
std::vector<op_case> more_cases() {
  constexpr int paddle_int64 = 3, paddle_float32 = 5;
  std::vector<op_case> all{
    constant({3, 5}, 7, paddle_int64),
    constant({3, 5}, 7, paddle_float32),
    range(dtype::int64, 3, 12, 2),
    range(dtype::int32, 5, -4, -3),
    range(dtype::float32, 0.5, 4, 1),
    sigmoid_loss({7, 3}),
    of_x("sqrt", random_values({7, 5}, 1, 1, 9), {{"Out"}, {"Out"}, {"X"}}),
    of_x("squared_l2_norm", random_values({19, 31}, 1),
         {{"Out"}, {"X"}, {"X"}})};
  for (auto name : {"merge_selected_rows", "get_tensor_from_selected_rows"})
    all.push_back(
      {.type = name,
       .inputs = {{"X", {random_rows({6, 3}, {4, 1, 4, 4, 0, 1}, 1)}}}});
  for (auto type : {dtype::int64, dtype::int32})
    for (auto name : {"elementwise_add", "elementwise_sub"})
      all.push_back({.type = name,
                     .inputs = {{"X", {random_indices({4, 3}, 1, -9, 9, type)}},
                                {"Y", {random_indices({3}, 2, -9, 9, type)}}}});
  for (auto type : {"elementwise_div", "elementwise_max"})
    for (auto& [y, axis] : std::vector<std::pair<shape, int>>{
           {{2, 3, 5}, -1}, {{3}, 1}, {{5}, -1}, {{1}, -1}})
      all.push_back(pairs(type, {2, 3, 5}, y, axis));
  for (auto type : {dtype::float32, dtype::int64, dtype::uint8})
    for (bool lower : {true, false})
      for (int diagonal : {-9, -1, 0, 2})
        all.push_back(
          triangle(random_indices({2, 5, 4}, 1, 1, 9, type), lower, diagonal));
  return all;
}

op_case bad_lookup(double id) {
  return {.type = "lookup_table_v2",
          .inputs = {{"W", {random_values({4, 3}, 1)}},
                     {"Ids", {values_of({2}, {1, id}, dtype::int64)}}},
          .gradient = gradient_slots{{"Out"}, {"W", "Ids"}, {"W"}}};
}

op_case label_case(double label) {
  return {.type = "softmax_with_cross_entropy",
          .inputs = {{"Logits", {random_values({1, 4}, 1)}},
                     {"Label", {values_of({1, 1}, {label}, dtype::int64)}}},
          .outputs = {{"Softmax", 1}, {"Loss", 1}}};
}

} // namespace

TEST_CASE("each kernel for CUDA devices agrees with the reference") {
  comparison on_gpu;
  on_gpu.check_all(all_cases());
  on_gpu.check_all(more_cases());
  for (auto& type : cuda::cuda_kernels().op_types(device_kind::cuda))
    CHECK_MESSAGE(on_gpu.covered().contains(type), type);
}

TEST_CASE("results do not depend on the order of a block's threads") {
  if (tests_use_gpu())
    return; // the order is the GPU's own
  const op_case softmax{.type = "softmax",
                        .inputs = {{"X", {random_values({7, 300}, 1)}}}};
  const op_case sums{.type = "elementwise_add_grad",
                     .inputs = {{"X", {random_values({300, 5}, 1)}},
                                {"Y", {random_values({5}, 2)}},
                                {"Out@GRAD", {random_values({300, 5}, 3)}}},
                     .outputs = {{"X@GRAD", 1}, {"Y@GRAD", 1}}};
  for (auto& c : {softmax, sums}) {
    const auto first = comparison(1).run(c);
    for (std::uint64_t seed = 2; seed < 12; ++seed)
      CHECK(difference(comparison(seed).run(c), first, 0) == "");
  }
}

TEST_CASE("a kernel for CUDA devices that is wrong by 1e-4 is noticed") {
  const op_case c{.type = "scale",
                  .inputs = {{"X", {random_values({3, 5}, 1)}}},
                  .attributes = {{"scale", 2.0f}}};
  auto other = c;
  other.attributes.set("scale", 2.0002f);
  const auto wanted = run_op(reference_kernels(), c);
  comparison on_gpu;
  CHECK(difference(on_gpu.run(c), wanted, reference_tolerance) == "");
  CHECK(difference(on_gpu.run(other), wanted, reference_tolerance) != "");
}

TEST_CASE("a label that is no class is an error, and the device works on") {
  comparison on_gpu;
  for (double label : {4.0, -1.0}) {
    const auto e = caught([&] { on_gpu.run(label_case(label)); });
    CHECK(e.code() == errc::out_of_range);
    CHECK(says(e, "label " + std::to_string(static_cast<int>(label))
                    + " of 4 classes"));
  }
  on_gpu.check(label_case(3));
}

TEST_CASE("an index beyond a table is an error, and the device works on") {
  comparison on_gpu;
  const auto good = bad_lookup(0);
  auto gradient = backward_of(good, run_op(reference_kernels(), good));
  for (double id : {4.0, -1.0}) {
    gradient.inputs["Ids"] = bad_lookup(id).inputs["Ids"];
    for (const auto& c : {bad_lookup(id), gradient}) {
      const auto e = caught([&] { on_gpu.run(c); });
      CHECK(e.code() == errc::out_of_range);
      CHECK(says(e, "index " + std::to_string(static_cast<int>(id))
                      + " is not in [0, 4)"));
    }
  }
  on_gpu.check(good);
}

TEST_CASE("bad shapes give the reference's error on CUDA devices") {
  comparison on_gpu;
  const auto kernels = cuda::cuda_kernels();
  for (auto& [op, code] : bad_cases())
    if (kernels.has(op.type, device_kind::cuda)) {
      const auto e = caught([&] { on_gpu.run(op); });
      CHECK_MESSAGE((e.code() == code || e.code() == errc::unsupported_op),
                    describe(op) << ": " << e.what());
    }
}

TEST_CASE("a convolution in little memory unfolds some images at a time") {
  comparison on_gpu;
  for (int groups : {1, 4}) {
    const op_case c{
      .type = "conv2d",
      .inputs = {{"Input", {random_values({5, 4, 40, 37}, 1)}},
                 {"Filter", {random_values({4, 4 / groups, 3, 3}, 2)}}},
      .attributes = {{"workspace_size_MB", 1},
                     {"groups", groups},
                     {"paddings", std::vector<std::int32_t>{1, 1}}},
      .outputs = {{"Output", 1}},
      .gradient =
        gradient_slots{{"Output"}, {"Input", "Filter"}, {"Input", "Filter"}}};
    on_gpu.check(c);
  }
}

TEST_CASE("an attribute without a kernel is refused before the first step") {
  const auto kernels = cuda::cuda_kernels();
  const auto refuses = [&](const char* type, const attribute_map& attributes) {
    return caught([&] {
             kernels.make(type, device_kind::cuda, attributes);
           }).code()
           == errc::unsupported_op;
  };
  const attribute_map soft{{"soft_label", true}};
  const attribute_map last{{"data_format", "NHWC"},
                           {"ksize", std::vector<std::int32_t>{2, 2}}};
  CHECK(refuses("softmax_with_cross_entropy", soft));
  CHECK(refuses("softmax_with_cross_entropy_grad", soft));
  for (auto type : {"sigmoid_cross_entropy_with_logits",
                    "sigmoid_cross_entropy_with_logits_grad"})
    CHECK(refuses(type, {{"normalize", true}}));
  for (auto type : {"conv2d", "conv2d_grad", "pool2d", "pool2d_grad"})
    CHECK(refuses(type, last));
}

TEST_CASE("no other precision than float32 is promised on CUDA devices") {
  CHECK(caught([] { cuda::cuda_kernels(precision::bfloat16); }).code()
        == errc::unsupported_op);
}

} // TEST_SUITE("kernels.cuda.bodies")

} // namespace troupe::test

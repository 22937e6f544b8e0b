// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>
#include <kernels/cpu/against_reference.hpp>
#include <support/op_runner.hpp>

#include <troupe/kernels/kernel.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <set>

namespace troupe::test {

TEST_SUITE("kernels.cpu.against_reference") {

namespace {

void check_against_reference(const std::vector<op_case>& cases) {
  reference_check check(cpu_kernels());
  CHECK_FALSE(cases.empty());
  for (const auto& c : cases)
    for (const auto& failure : check.failures(c))
      FAIL_CHECK(failure);
}

/// scale, 1e-4 too large.
void slightly_wrong_scale(kernel_context& ctx) {
  const auto x = ctx.input("X");
  auto out = ctx.output("Out", x.dims(), x.type());
  const float factor = 1.0001f * ctx.attributes().get_float("scale", 1);
  for (std::size_t i = 0; i < x.values<float>().size(); ++i)
    out.values<float>()[i] = factor * x.values<float>()[i];
}

/// The op types that the cases run, gradients included.
std::set<std::string> covered_types() {
  std::set<std::string> types;
  for (const auto& c : all_cases()) {
    types.insert(c.type);
    if (c.gradient)
      types.insert(c.type + "_grad");
  }
  return types;
}

/// The code of the error that the op ends with.
std::optional<errc> failure(const kernel_table& table, const op_case& c) {
  try {
    run_op(table, c);
  } catch (const error& e) {
    return e.code();
  }
  return {};
}

} // namespace

TEST_CASE("activations agree with the reference") {
  check_against_reference(activation_cases());
}
TEST_CASE("scale, sum, cast and assign agree with the reference") {
  check_against_reference(arithmetic_cases());
}
TEST_CASE("concat and split agree with the reference") {
  check_against_reference(concat_cases());
}
TEST_CASE("convolutions agree with the reference") {
  check_against_reference(conv2d_cases());
}
TEST_CASE("dropout agrees with the reference, mask included") {
  check_against_reference(dropout_cases());
}
TEST_CASE("elementwise ops agree with the reference") {
  check_against_reference(elementwise_cases());
}
TEST_CASE("embeddings agree with the reference") {
  check_against_reference(embedding_cases());
}
TEST_CASE("initializers agree with the reference") {
  check_against_reference(initializer_cases());
}
TEST_CASE("matrix products agree with the reference") {
  check_against_reference(matmul_cases());
}
TEST_CASE("top_k_v2 and accuracy agree with the reference") {
  check_against_reference(metric_cases());
}
TEST_CASE("ops that move elements agree with the reference") {
  check_against_reference(movement_cases());
}
TEST_CASE("normalizations agree with the reference") {
  check_against_reference(normalization_cases());
}
TEST_CASE("optimizers agree with the reference") {
  check_against_reference(optimizer_cases());
}
TEST_CASE("pooling agrees with the reference") {
  check_against_reference(pool2d_cases());
}
TEST_CASE("reductions agree with the reference") {
  check_against_reference(reduce_cases());
}
TEST_CASE("softmax and its loss agree with the reference") {
  check_against_reference(softmax_cases());
}

TEST_CASE("bad inputs give the reference's error") {
  const auto fast = cpu_kernels();
  for (const auto& [op, code] : bad_cases())
    CHECK_MESSAGE(failure(fast, op) == code, describe(op));
}

TEST_CASE("every op with a reference has a CPU kernel and is tested") {
  const auto covered = covered_types();
  const auto fast = cpu_kernels();
  for (const auto& type : reference_kernels().op_types(device_kind::cpu)) {
    CHECK_MESSAGE(fast.has(type, device_kind::cpu), type);
    CHECK_MESSAGE(covered.contains(type), type);
  }
}

TEST_CASE("a kernel that is wrong by 1e-4 is noticed") {
  auto wrong = cpu_kernels();
  wrong.add("scale", device_kind::cpu, slightly_wrong_scale);
  const op_case c{.type = "scale",
                  .inputs = {{"X", {random_values({3, 5}, 1)}}},
                  .attributes = {{"scale", 2.0f}}};
  CHECK(reference_check(cpu_kernels()).failures(c).empty());
  CHECK(reference_check(wrong).failures(c).size() == 1);
}
} // TEST_SUITE("kernels.cpu.against_reference")

} // namespace troupe::test

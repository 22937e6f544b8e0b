// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>
#include <support/caught.hpp>
#include <support/op_runner.hpp>

#include <troupe/kernels/kernel.hpp>

#include <doctest/doctest.h>

namespace troupe::test {

TEST_SUITE("kernels.ref.errors") {
TEST_CASE("inputs that do not fit are refused with the code for why") {
  for (const auto& [op, code] : bad_cases()) {
    CAPTURE(describe(op));
    const auto& c = op;
    CHECK(caught([&] { run_op(reference_kernels(), c); }).code() == code);
  }
}

TEST_CASE("the message about a label names it and the number of classes") {
  const op_case c{
    .type = "softmax_with_cross_entropy",
    .inputs = {{"Logits", {random_values({1, 4}, 1)}},
               {"Label", {values_of({1, 1}, {17}, dtype::int64)}}},
    .outputs = {{"Softmax", 1}, {"Loss", 1}}};
  CHECK(caught([&] { run_op(reference_kernels(), c); }).message()
        == "label 17 of 4 classes");
}
} // TEST_SUITE("kernels.ref.errors")

} // namespace troupe::test

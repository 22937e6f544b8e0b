// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/lod_sharing.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <utility>

namespace troupe {

TEST_SUITE("kernels.lod_sharing") {

namespace {

/// Writes float32 tensors of three rows to its outputs, or two to Short.
class three_rows final : public kernel {
public:
  void run(kernel_context& ctx) override {
    ctx.outputs().for_each([&](const op_argument& out) {
      if (out.var)
        ctx.output(out.slot, {out.name == "short" ? 2 : 3, 1}, dtype::float32);
    });
  }
};

struct one_op {
  std::unique_ptr<device> on = make_cpu_device(0);
  variable x, y, out, second;
  argument_list inputs, outputs;

  void give_rows(variable& var, shared_lod levels) {
    auto value = tensor::make(on->memory(), {3, 1}, dtype::float32);
    value.set_levels(std::move(levels));
    var.set(std::move(value));
  }
  void run(lod_rule rule) {
    const attribute_map none;
    const step_info step;
    kernel_context ctx{*on, nullptr, none, inputs, outputs, step};
    three_rows code;
    run_kernel(code, rule, ctx);
  }
  std::uint32_t lenders(lod_rule rule) const {
    return find_lod_lenders(rule, inputs, outputs).which;
  }
};

const auto two_and_one = make_lod({{0, 2, 3}}, 3);
const auto one_and_two = make_lod({{0, 1, 3}}, 3);
constexpr auto forward = lod_rule::inputs_to_outputs;
constexpr auto backward = lod_rule::values_to_gradients;

} // namespace

TEST_CASE("the rule follows from the op type") {
  CHECK(lod_rule_of("relu") == forward);
  CHECK(lod_rule_of("relu_grad") == backward);
  for (auto type : {"sequence_pool", "lod_reset", "transpose2", "reduce_sum",
                    "conditional_block", "while", "while_grad"})
    CHECK(lod_rule_of(type) == lod_rule::none);
}

TEST_CASE_FIXTURE(one_op, "an output forms the sequences of the input") {
  give_rows(x, two_and_one);
  inputs.add({"X", "x", &x});
  outputs.add({"Out", "out", &out});
  outputs.add({"Mask", "second", &second});
  run(forward);
  CHECK(out.as_tensor().levels() == two_and_one);
  CHECK_FALSE(second.as_tensor().levels()); // the slot does not borrow
  run(lod_rule::none);
  CHECK_FALSE(out.as_tensor().levels());
}

TEST_CASE_FIXTURE(one_op, "an output of another length forms no sequences") {
  give_rows(x, two_and_one);
  inputs.add({"X", "x", &x});
  outputs.add({"Out", "short", &out});
  run(forward);
  CHECK_FALSE(out.as_tensor().levels());
}

TEST_CASE_FIXTURE(one_op, "the first input with levels lends them") {
  give_rows(x, nullptr);
  give_rows(y, one_and_two);
  inputs.add({"X", "x", &x});
  inputs.add({"Input", "y", &y});
  outputs.add({"Out", "out", &out});
  CHECK(lenders(forward) == lod_lenders::several);
  run(forward);
  CHECK(out.as_tensor().levels() == one_and_two);
  give_rows(x, two_and_one);
  run(forward);
  CHECK(out.as_tensor().levels() == two_and_one);
}

TEST_CASE_FIXTURE(one_op, "an op that writes its input keeps the sequences") {
  give_rows(x, two_and_one);
  inputs.add({"X", "x", &x});
  outputs.add({"Out", "x", &x});
  run(forward);
  CHECK(x.as_tensor().levels() == two_and_one);
}

TEST_CASE_FIXTURE(one_op, "a gradient forms the sequences of its value") {
  give_rows(x, two_and_one);
  give_rows(y, one_and_two);
  inputs.add({"Y", "y", &y});
  inputs.add({"X", "x", &x});
  outputs.add({"X@GRAD", "dx", &out});
  CHECK(lenders(backward) == 1);
  run(backward);
  CHECK(out.as_tensor().levels() == two_and_one);
}

TEST_CASE_FIXTURE(one_op,
                  "a gradient of a value that is not read borrows Out") {
  give_rows(y, one_and_two);
  inputs.add({"X", "@EMPTY@", nullptr});
  inputs.add({"Out", "y", &y});
  outputs.add({"X@GRAD", "dx", &out});
  CHECK(lenders(backward) == 1);
  run(backward);
  CHECK(out.as_tensor().levels() == one_and_two);
}

TEST_CASE_FIXTURE(one_op, "ops whose slots neither lend nor borrow have none") {
  inputs.add({"Param", "x", &x});
  outputs.add({"ParamOut", "x", &x});
  CHECK(lenders(forward) == lod_lenders::none);
  CHECK(lenders(lod_rule::none) == lod_lenders::none);
}

} // TEST_SUITE("kernels.lod_sharing")

} // namespace troupe

// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/kernel.hpp>

#include <kernels/tensors.hpp>
#include <support/caught.hpp>

namespace troupe {

using test::caught;
using test::floats;
using test::make_floats;
using test::make_reversed;
using test::says;

TEST_SUITE("kernels.kernel_context") {

namespace {

// One op with inputs X (two variables) and Param, outputs Out and ParamOut,
// the last in place on Param.
struct fixture {
  std::unique_ptr<device> cpu = make_cpu_device(0);
  attribute_map attributes{{"axis", std::int32_t{1}}};
  variable x0, x1, param, out;
  argument_list inputs{{"X", "x0", &x0},
                       {"X", "x1", &x1},
                       {"Param", "w", &param},
                       {"Bias", "@EMPTY@", nullptr}};
  argument_list outputs{{"Out", "out", &out}, {"ParamOut", "w", &param}};
  step_info step{.step = 3, .seed = 9};
  kernel_context ctx{*cpu, nullptr, attributes, inputs, outputs, step};

  tensor values(std::vector<float> all) {
    return make_floats(cpu->memory(), all);
  }
};

} // namespace

TEST_CASE_FIXTURE(fixture, "slots say how many arguments they have") {
  CHECK(ctx.has_input("X"));
  CHECK(ctx.num_inputs("X") == 2);
  CHECK(ctx.num_inputs("Param") == 1);
  CHECK_FALSE(ctx.has_input("Out"));
  CHECK(ctx.num_inputs("Out") == 0);
  CHECK(ctx.has_output("Out"));
  CHECK(ctx.num_outputs("Out") == 1);
  CHECK_FALSE(ctx.has_output("X"));
  CHECK_FALSE(ctx.has_input("Bias"));
}

TEST_CASE_FIXTURE(fixture, "device, attributes, step and names are at hand") {
  CHECK(&ctx.on() == cpu.get());
  CHECK(ctx.queue() == nullptr);
  CHECK(ctx.attributes().get_int("axis", 0) == 1);
  CHECK(ctx.step().step == 3);
  CHECK(ctx.output_name("ParamOut") == "w");
}

TEST_CASE_FIXTURE(fixture, "inputs are found by slot and index") {
  x0.set(values({1}));
  x1.set(values({2, 3}));
  CHECK(floats(ctx.input("X")) == std::vector{1.f});
  CHECK(floats(ctx.input("X", 1)) == std::vector{2.f, 3.f});
  CHECK(&ctx.input_variable("X", 1) == &x1);
  CHECK(&ctx.output_variable("Out") == &out);
}

TEST_CASE_FIXTURE(fixture, "missing arguments are errors naming the slot") {
  auto slot = caught([&] { ctx.input("Y"); });
  CHECK(slot.code() == errc::kernel_failure);
  CHECK(says(slot, "Y[0] is missing"));
  CHECK(says(caught([&] { ctx.input("X", 2); }), "X[2] is missing"));
  CHECK(says(caught([&] { ctx.input_variable("Y"); }), "Y[0] is missing"));
  CHECK(says(caught([&] { ctx.output_variable("X"); }), "X[0] is missing"));
  CHECK(says(caught([&] { ctx.output("Mask", {1}, dtype::uint8); }),
             "Mask[0] is missing"));
  CHECK(says(caught([&] { ctx.input("Bias"); }), "Bias[0] has no variable"));
}

TEST_CASE_FIXTURE(fixture, "inputs without a value name their variable") {
  auto empty = caught([&] { ctx.input("X", 1); });
  CHECK(empty.code() == errc::kernel_failure);
  CHECK(says(empty, "X[1] holds no value"));
  CHECK(empty.where().variable == "x1");
  x1.set(selected_rows{});
  auto rows = caught([&] { ctx.input("X", 1); });
  CHECK(rows.code() == errc::kernel_failure);
  CHECK(says(rows, "X[1] holds selected rows, expected a tensor"));
  CHECK(ctx.input_variable("X", 1).is_rows());
}

TEST_CASE_FIXTURE(fixture, "an input in a library's layout arrives plain") {
  x0.set(make_reversed(cpu->memory(), std::vector{1.f, 2.f}));
  auto plain = ctx.input("X");
  CHECK(plain.is_plain());
  CHECK(floats(plain) == std::vector{1.f, 2.f});
  CHECK_FALSE(x0.as_tensor().is_plain());
}

TEST_CASE_FIXTURE(fixture, "an output is a new tensor of the device") {
  auto made = ctx.output("Out", {2, 3}, dtype::int32);
  CHECK(made.dims() == shape{2, 3});
  CHECK(made.type() == dtype::int32);
  REQUIRE(out.is_tensor());
  CHECK(out.as_tensor().raw() == made.raw());
  CHECK(cpu->memory().live_bytes() == made.memory().capacity());
}

TEST_CASE_FIXTURE(fixture, "an update in place costs no memory") {
  param.set(values({1, 2}));
  auto before = ctx.input("Param");
  auto live = cpu->memory().live_bytes();
  auto after = ctx.output("ParamOut", {2}, dtype::float32);
  CHECK(after.raw() == before.raw());
  CHECK(cpu->memory().live_bytes() == live);
}

TEST_CASE_FIXTURE(fixture, "an output of as many elements takes a new shape") {
  out.set(values({1, 2, 3, 4}));
  auto* memory = out.as_tensor().raw();
  auto square = ctx.output("Out", {2, 2}, dtype::float32);
  CHECK(square.raw() == memory);
  CHECK(out.as_tensor().dims() == shape{2, 2});
}

TEST_CASE_FIXTURE(fixture, "memory that others share is not written") {
  auto original = values({1, 2});
  x0.set(original.share());
  param.set(original);
  auto after = ctx.output("ParamOut", {2}, dtype::float32);
  after.data<float>()[0] = 5;
  CHECK(after.raw() != original.raw());
  CHECK(floats(x0.as_tensor()) == std::vector{1.f, 2.f});
  CHECK_FALSE(after.is_shared());
}

TEST_CASE_FIXTURE(fixture, "another size, dtype or layout takes new memory") {
  auto held = values({1, 2});
  auto takes_new = [&](const shape& dims, dtype type) {
    out.set(held);
    return ctx.output("Out", dims, type).raw() != held.raw();
  };
  CHECK(takes_new({3}, dtype::float32));
  CHECK(takes_new({1}, dtype::float32));
  CHECK(takes_new({2}, dtype::int32));
  CHECK_FALSE(takes_new({2}, dtype::float32));
  held = make_reversed(cpu->memory(), std::vector{1.f, 2.f});
  CHECK(takes_new({2}, dtype::float32));
  CHECK(out.as_tensor().is_plain());
}

TEST_CASE_FIXTURE(fixture, "selected rows give way to a tensor") {
  out.set(selected_rows{});
  ctx.output("Out", {2}, dtype::float32);
  CHECK(out.is_tensor());
}

TEST_CASE_FIXTURE(fixture, "an input handle survives a new output") {
  param.set(values({1, 2}));
  auto before = ctx.input("Param");
  ctx.output("ParamOut", {5}, dtype::float32);
  CHECK(floats(before) == std::vector{1.f, 2.f});
}

TEST_CASE_FIXTURE(fixture, "scratch memory is released with the tensor") {
  auto live = cpu->memory().live_bytes();
  {
    auto scratch = ctx.scratch(100);
    CHECK(scratch.type() == dtype::float32);
    CHECK(scratch.numel() == 100);
    CHECK(cpu->memory().live_bytes() > live);
  }
  CHECK(cpu->memory().live_bytes() == live);
}

} // TEST_SUITE("kernels.kernel_context")

} // namespace troupe

// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/kernel.hpp>

#include <support/caught.hpp>

namespace troupe {

using test::caught;
using test::says;

TEST_SUITE("kernels.kernel_table") {

namespace {

class counting_kernel final : public kernel {
public:
  explicit counting_kernel(std::int64_t start) : count_(start) {}
  void run(kernel_context& ctx) override {
    ctx.output("Out", {++count_}, dtype::float32);
  }

private:
  std::int64_t count_;
};

std::unique_ptr<kernel> make_counting(const attribute_map& attributes) {
  return std::make_unique<counting_kernel>(attributes.get_int("start", 0));
}

void make_seven(kernel_context& ctx) {
  ctx.output("Out", {7}, dtype::float32);
}

// Elements of Out after `code` has run `times` times.
std::int64_t elements_after(kernel& code, int times) {
  auto cpu = make_cpu_device(0);
  variable out;
  attribute_map none;
  argument_list outputs{{"Out", "out", &out}};
  step_info step;
  kernel_context ctx{*cpu, nullptr, none, {}, outputs, step};
  for (int i = 0; i < times; ++i)
    code.run(ctx);
  return out.as_tensor().numel();
}

constexpr auto cpu = device_kind::cpu;

} // namespace

TEST_CASE("a function is a kernel") {
  kernel_table table;
  table.add("seven", cpu, make_seven);
  CHECK(elements_after(*table.make("seven", cpu, {}), 2) == 7);
}

TEST_CASE("a factory reads the attributes and makes a kernel that remembers") {
  kernel_table table;
  table.add("count", cpu, make_counting);
  attribute_map attributes{{"start", std::int32_t{10}}};
  auto first = table.make("count", cpu, attributes);
  CHECK(elements_after(*first, 3) == 13);
  CHECK(elements_after(*first, 1) == 14);
  CHECK(elements_after(*table.make("count", cpu, attributes), 1) == 11);
}

TEST_CASE("a later entry replaces an earlier one of either form") {
  kernel_table table;
  table.add("op", cpu, make_counting);
  table.add("op", cpu, make_seven);
  CHECK(elements_after(*table.make("op", cpu, {}), 1) == 7);
  table.add("op", cpu, make_counting);
  CHECK(elements_after(*table.make("op", cpu, {}), 1) == 1);
  CHECK(table.op_types(cpu).size() == 1);
}

TEST_CASE("an op without a kernel is an error naming op and device kind") {
  kernel_table table;
  table.add("relu", cpu, make_seven);
  auto failure = caught([&] { table.make("relu", device_kind::cuda, {}); });
  CHECK(failure.code() == errc::unsupported_op);
  CHECK(says(failure, "no kernel for \"relu\" on cuda"));
  CHECK(failure.where().op_type == "relu");
  CHECK(caught([&] { table.make("gelu", cpu, {}); }).code()
        == errc::unsupported_op);
}

TEST_CASE("a table knows its op types by device kind, sorted") {
  kernel_table table;
  table.add("relu", cpu, make_seven);
  table.add("add", cpu, make_seven);
  table.add("mul", device_kind::cuda, make_seven);
  CHECK(table.has("relu", cpu));
  CHECK_FALSE(table.has("relu", device_kind::cuda));
  CHECK_FALSE(table.has("mul", cpu));
  CHECK(table.op_types(cpu) == std::vector<std::string>{"add", "relu"});
  CHECK(table.op_types(device_kind::sim).empty());
}

TEST_CASE("a table is a value") {
  kernel_table table;
  auto copy = table;
  copy.add("relu", cpu, make_seven);
  CHECK_FALSE(table.has("relu", cpu));
}

} // TEST_SUITE("kernels.kernel_table")

} // namespace troupe

// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/scope.hpp>

#include <kernels/tensors.hpp>
#include <support/caught.hpp>
#include <support/veiled_device.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

namespace troupe {

using test::caught;
using test::floats;
using test::make_floats;
using test::make_reversed;
using test::veiled_device;

TEST_SUITE("kernels.scope") {

namespace {

const std::vector<float> three{1, 2, 3};

/// A scope with the variable "w" in the memory of a device.
struct lent_scope {
  arena host{make_host_memory_source()};
  std::shared_ptr<device> on = std::make_shared<veiled_device>();
  scope parameters;

  lent_scope() {
    parameters.add_device(on);
    parameters.var("w").set(make_floats(host, three));
    parameters.bring_to("w", *on);
  }
  const tensor& w() { return parameters.find("w")->as_tensor(); }
};

} // namespace

TEST_CASE("a variable is made empty at first use and found afterwards") {
  scope parameters;
  CHECK(parameters.find("w") == nullptr);
  auto& made = parameters.var("w");
  CHECK_FALSE(made.has_value());
  CHECK(&parameters.var("w") == &made);
  CHECK(parameters.find("w") == &made);
  CHECK(std::as_const(parameters).find("w") == &made);
}

TEST_CASE("references stay valid while more variables come") {
  scope parameters;
  auto& first = parameters.var("a");
  for (int i = 0; i < 1000; ++i)
    parameters.var("v" + std::to_string(i));
  CHECK(&parameters.var("a") == &first);
}

TEST_CASE("names are sorted") {
  scope parameters;
  parameters.var("b");
  parameters.var("a");
  parameters.var("c");
  CHECK(parameters.names() == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("the first device works on the scope itself") {
  scope parameters;
  CHECK(&parameters.replica(0) == &parameters);
}

TEST_CASE("each further device has a replica that stays in place") {
  scope parameters;
  auto& third = parameters.replica(3);
  auto& first = parameters.replica(1);
  CHECK(&third != &first);
  CHECK(&third != &parameters);
  CHECK(&parameters.replica(3) == &third);
  parameters.replica(100);
  CHECK(&parameters.replica(1) == &first);
}

TEST_CASE("replicas have variables of their own") {
  scope parameters;
  parameters.var("w");
  CHECK(parameters.replica(1).find("w") == nullptr);
  parameters.replica(1).var("w").set(selected_rows{});
  CHECK_FALSE(parameters.var("w").has_value());
}

TEST_CASE("dropped replicas are made anew, the scope itself stays") {
  scope parameters;
  parameters.var("w").set(selected_rows{});
  parameters.replica(1).var("w").set(selected_rows{});
  parameters.drop_replicas();
  CHECK(parameters.var("w").has_value());
  CHECK(parameters.replica(1).names().empty());
}

TEST_CASE("the host gets a plain value in its own memory as it is") {
  arena host{make_host_memory_source()};
  scope parameters;
  const auto value = make_floats(host, three);
  CHECK(parameters.to_host(value, host).raw() == value.raw());
  const auto reversed = make_reversed(host, three);
  CHECK(floats(parameters.to_host(reversed, host)) == three);
  CHECK_FALSE(parameters.to_host(tensor{}, host));
}

TEST_CASE("a value that a device has not reached is moved to it") {
  lent_scope lent;
  CHECK_FALSE(lent.w().memory().is_host());
  CHECK(lent.on->memory().owns(lent.w().memory()));
  const auto* place = lent.w().raw();
  lent.parameters.bring_to("w", *lent.on);
  CHECK(lent.w().raw() == place);
  lent.parameters.bring_to("no such variable", *lent.on);
}

TEST_CASE("the host gets a copy of a value in a device's memory") {
  lent_scope lent;
  const auto here = lent.parameters.to_host(lent.w(), lent.host);
  CHECK(here.memory().is_host());
  CHECK(floats(here) == three);
  CHECK(floats(lent.w()) != three);
}

TEST_CASE("values move from one device to another") {
  lent_scope lent;
  const auto other = std::make_shared<veiled_device>();
  CHECK_FALSE(other->reaches(lent.w()));
  lent.parameters.add_device(other);
  lent.parameters.bring_to("w", *other);
  CHECK(other->reaches(lent.w()));
  CHECK(floats(lent.parameters.to_host(lent.w(), lent.host)) == three);
  const auto cpu = make_cpu_device(0);
  lent.parameters.bring_to("w", *cpu);
  CHECK(floats(lent.w()) == three);
}

TEST_CASE("CPU devices reach each other's values") {
  const auto a = make_cpu_device(0), b = make_cpu_device(1);
  CHECK(a->reaches(make_floats(b->memory(), three)));
  CHECK(a->reaches(tensor{}));
}

TEST_CASE("a scope holds a device as long as values lie there") {
  lent_scope lent;
  const std::weak_ptr<device> first = lent.on;
  lent.on.reset();
  const std::shared_ptr<device> second = std::make_shared<veiled_device>();
  lent.parameters.add_device(second);
  CHECK_FALSE(first.expired());
  lent.parameters.bring_to("w", *second);
  lent.parameters.add_device(second);
  CHECK(first.expired());
  CHECK(second.use_count() == 2);
  lent.parameters.add_device(make_cpu_device(0)); // host memory needs no device
  CHECK(floats(lent.parameters.to_host(lent.w(), lent.host)) == three);
}

TEST_CASE("a value in the memory of an unknown device is an error") {
  arena host{make_host_memory_source()};
  veiled_device stranger;
  scope parameters;
  const auto value = stranger.memory().allocate(4);
  CHECK(caught([&] {
          parameters.to_host(tensor({1}, dtype::float32, value), host);
        }).code()
        == errc::invalid_argument);
}

} // TEST_SUITE("kernels.scope")

} // namespace troupe

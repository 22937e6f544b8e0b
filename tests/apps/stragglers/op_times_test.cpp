// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/stragglers/op_times.hpp>

#include <troupe/kernels/device.hpp>
#include <troupe/kernels/kernel.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::apps;

TEST_SUITE("apps.stragglers.op_times") {

TEST_CASE("kernels add up how long they run, by type") {
  kernel_table table;
  for (const auto* type : {"sleeps", "rests"})
    table.add(type, device_kind::cpu, [](kernel_context&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
  op_times times;
  const auto timed = times.wrapped(table, device_kind::cpu);
  const auto a = timed->make("sleeps", device_kind::cpu, {});
  const auto b = timed->make("sleeps", device_kind::cpu, {});
  const auto c = timed->make("rests", device_kind::cpu, {});
  const auto on = make_cpu_device(0);
  const attribute_map attributes;
  const argument_list nothing;
  const step_info step;
  kernel_context context(*on, nullptr, attributes, nothing, nothing, step);
  for (auto* kernel : {a.get(), b.get(), a.get()})
    kernel->run(context);
  CHECK(times.types() == std::vector<std::string>{"sleeps", "rests"});
  const auto totals = times.totals();
  REQUIRE(totals.size() == 2);
  CHECK(totals[0] >= 15'000'000);
  CHECK(totals[1] == 0);
}

} // TEST_SUITE("apps.stragglers.op_times")

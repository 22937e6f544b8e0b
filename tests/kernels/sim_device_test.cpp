// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/sim/sim_device.hpp>

#include <troupe/base/clock.hpp>

#include <kernels/tensors.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace troupe {

using test::floats;
using test::make_floats;
using test::make_reversed;

TEST_SUITE("kernels.sim_device") {

namespace {

constexpr std::uint32_t late_us = 20'000;

/// A device whose launches and copies named "late" take some time.
std::unique_ptr<device> make_slow_device() {
  return make_sim_device({device_kind::sim, 0},
                         {.us_of_op = {{"late", late_us}}});
}

class work_that final : public work {
public:
  explicit work_that(std::function<void(stream&)> act) : act_(std::move(act)) {}
  void execute(stream& on) override { act_(on); }
  void completed(std::exception_ptr) noexcept override {}

private:
  std::function<void(stream&)> act_;
};

/// Runs `act` on a stream of `on` and returns when it is complete.
void run_on(device& on, std::function<void(stream&)> act) {
  work_that job{std::move(act)};
  auto queue = on.make_stream({.name = "compute"});
  queue->synchronize(
    queue->launch(job, {.tell_completion = false, .op_type = "late"}).position);
}

} // namespace

TEST_CASE("a copy to the host is done when its launch ends, not before") {
  auto sim = make_slow_device();
  arena host{make_host_memory_source()};
  const auto there = sim->to_device(make_floats(host, std::vector{1.f, 2.f}));
  tensor back;
  std::vector<float> seen;
  const auto begin = now_ns();
  run_on(*sim, [&](stream& on) {
    back = sim->to_host(there, host, on);
    seen = floats(back);
  });
  CHECK(now_ns() - begin >= late_us * 1000ull);
  CHECK(std::isnan(seen[0]));
  CHECK(floats(back) == std::vector{1.f, 2.f});
}

TEST_CASE("a copy to a simulated device is done when its stream says so") {
  auto sim = make_slow_device();
  arena host{make_host_memory_source()};
  auto fed = make_floats(host, std::vector{1.f, 2.f});
  auto queue = sim->make_stream({.name = "late"});
  const auto begin = now_ns();
  const auto there = sim->to_device(fed, *queue);
  fed.data<float>()[0] = 7; // the device has the value of the call
  const auto position = queue->position();
  CHECK(position > 0);
  queue->synchronize(position);
  CHECK(now_ns() - begin >= late_us * 1000ull);
  CHECK(floats(there) == std::vector{1.f, 2.f});
}

TEST_CASE("another stream waits for a copy by its position") {
  auto sim = make_slow_device();
  arena host{make_host_memory_source()};
  auto feeds = sim->make_stream({.name = "late"});
  auto compute = sim->make_stream({.name = "compute"});
  const auto there =
    sim->to_device(make_floats(host, std::vector{3.f}), *feeds);
  std::vector<float> seen;
  work_that reader{[&](stream&) { seen = floats(there); }};
  compute->wait(*feeds, feeds->position());
  compute->synchronize(
    compute->launch(reader, {.tell_completion = false}).position);
  CHECK(seen == std::vector{3.f});
}

TEST_CASE("the memory of a copy is not given to others before it is done") {
  auto sim = make_slow_device();
  arena host{make_host_memory_source()};
  auto there = sim->to_device(make_floats(host, std::vector{1.f, 2.f}));
  const auto* place = there.raw();
  tensor back;
  run_on(*sim, [&](stream& on) {
    back = sim->to_host(there, host, on);
    there = {};
    const auto next = make_floats(sim->memory(), std::vector{8.f, 9.f});
    CHECK(next.raw() != place);
  });
  CHECK(floats(back) == std::vector{1.f, 2.f});
  CHECK(sim->memory().live_bytes() == 0);
}

TEST_CASE("a value in a library's layout comes to the host plain, and late") {
  auto sim = make_slow_device();
  arena host{make_host_memory_source()};
  const auto there = make_reversed(sim->memory(), std::vector{1.f, 2.f, 3.f});
  tensor back;
  run_on(*sim, [&](stream& on) { back = sim->to_host(there, host, on); });
  CHECK(back.is_plain());
  CHECK(floats(back) == std::vector{1.f, 2.f, 3.f});
}

TEST_CASE("blocking copies return when they are done") {
  auto sim =
    make_sim_device({device_kind::sim, 0}, {.us_of_op = {{"copy", late_us}}});
  arena host{make_host_memory_source()};
  const auto begin = now_ns();
  const auto there = sim->to_device(make_floats(host, std::vector{4.f}));
  CHECK(floats(there) == std::vector{4.f});
  CHECK(floats(sim->to_host(there, host)) == std::vector{4.f});
  CHECK(now_ns() - begin >= 2 * late_us * 1000ull);
  CHECK_FALSE(sim->to_device(tensor{}));
}

} // TEST_SUITE("kernels.sim_device")

} // namespace troupe

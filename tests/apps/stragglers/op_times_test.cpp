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

namespace {

/// A kernel of `table` that writes `output`.
struct one_op {
  one_op(const kernel_table& table, const char* type, const char* output)
    : code(table.make(type, device_kind::cpu, {})), name(output) {}

  void run() {
    const auto on = make_cpu_device(0);
    const attribute_map attributes;
    const argument_list inputs;
    const argument_list outputs{{"Out", name, nullptr}};
    const step_info step;
    kernel_context context(*on, nullptr, attributes, inputs, outputs, step);
    code->run(context);
  }
  std::unique_ptr<kernel> code;
  std::string name;
};

} // namespace

TEST_CASE("kernels note how long each run takes, by op") {
  kernel_table table;
  for (const auto* type : {"sleeps", "rests"})
    table.add(type, device_kind::cpu, [](kernel_context&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
  op_times times;
  const auto timed = times.wrapped(table, device_kind::cpu);
  one_op a(*timed, "sleeps", "x"), b(*timed, "sleeps", "y"),
    c(*timed, "rests", "x"), of_another_device(*timed, "sleeps", "x");
  CHECK(times.take().empty()); // none has run
  for (auto* op : {&b, &a, &c, &of_another_device})
    op->run();
  const auto taken = times.take();
  REQUIRE(taken.size() == 3);
  CHECK(taken.at({"sleeps", "x"}).size() == 2);
  CHECK(taken.at({"sleeps", "y"}).size() == 1);
  for (auto& [op, ms] : taken)
    for (const auto each : ms)
      CHECK(each >= 5);
  CHECK(times.take().at({"rests", "x"}).empty()); // it is taken once
}

TEST_CASE("the latest runs of a kernel are kept") {
  kernel_table table;
  table.add("empty", device_kind::cpu, [](kernel_context&) {});
  op_times times;
  one_op op(*times.wrapped(table, device_kind::cpu), "empty", "x");
  for (int i = 0; i < 100; ++i)
    op.run();
  CHECK(times.take().at({"empty", "x"}).size() == 16);
  for (int i = 0; i < 3; ++i)
    op.run();
  CHECK(times.take().at({"empty", "x"}).size() == 3);
}

TEST_CASE("a kernel that is gone has no times") {
  kernel_table table;
  table.add("empty", device_kind::cpu, [](kernel_context&) {});
  op_times times;
  {
    one_op op(*times.wrapped(table, device_kind::cpu), "empty", "x");
    op.run();
  }
  CHECK(times.take().empty());
}

TEST_CASE("a kernel's time is that of the clock while its thread has a core") {
  const thread_use begin{1000, 500, 7};
  CHECK(kernel_ns(begin, {9000, 600, 7}, false) == 8000); // it slept
  CHECK(kernel_ns(begin, {9000, 600, 7}, true) == 8000);
}

TEST_CASE("a kernel whose thread has lost its core took the time on the core") {
  const thread_use begin{1000, 500, 7};
  CHECK(kernel_ns(begin, {9000, 3500, 8}, false) == 3000);
  CHECK(!kernel_ns(begin, {9000, 3500, 8}, true)); // others did a part
}

TEST_CASE("a thread's use of its core grows while it computes") {
  const auto begin = thread_use::now();
  while (thread_use::now().ran_ns - begin.ran_ns < 1'000'000) {
  }
  const auto end = thread_use::now();
  CHECK(end.wall_ns > begin.wall_ns);
  CHECK(end.preemptions >= begin.preemptions);
}

TEST_CASE("an op is known by its type and the first variable that it writes") {
  CHECK(key_of("conv2d_grad", {{"Input@GRAD", {"@EMPTY@"}},
                               {"Filter@GRAD", {"w@GRAD", "v@GRAD"}}})
        == op_key{"conv2d_grad", "w@GRAD"});
  CHECK(key_of("print", {{"Out", {}}}) == op_key{"print", ""});
}

} // TEST_SUITE("apps.stragglers.op_times")

// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/profile/op_profile.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/apps/program_source.hpp>
#include <troupe/base/job_queue.hpp>
#include <troupe/base/spin.hpp>
#include <troupe/graph/models.hpp>
#include <troupe/kernels/cpu/layout/layout_traffic.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <numeric>
#include <thread>

using namespace troupe;
using namespace troupe::apps;

TEST_SUITE("apps.op_profile") {

namespace {

/// A profile of a graph of two ops, with this thread as the only worker.
struct watched {
  job_queue queue{1};
  worker self{queue, 0};
  graph::op_desc mul, loop;
  op_profile profile;

  explicit watched(std::uint64_t skipped = 0) : profile(1, skipped) {
    mul.type = "mul";
    loop.type = "while";
    profile.begin(two_ops());
  }

  graph::ssa_graph two_ops() const {
    graph::ssa_graph g;
    g.ops.resize(2);
    g.ops[0].id = 0;
    g.ops[0].desc = &mul;
    g.ops[1].id = 1;
    g.ops[1].desc = &loop;
    return g;
  }
  void run(handle_id op, step_id step, std::uint64_t from, std::uint64_t to) {
    happens(event_kind::run_begin, op, step, from);
    happens(event_kind::run_end, op, step, to);
  }
  void happens(event_kind kind, handle_id op, step_id step,
               std::uint64_t time) {
    const trace_event e{.time = time,
                        .from = op,
                        .step = static_cast<std::uint32_t>(step),
                        .kind = kind};
    profile.take({&e, 1});
  }
};

kernel_context no_arguments(device& on) {
  static const attribute_map none;
  static const step_info step;
  return {on, nullptr, none, {}, {}, step};
}

class loop_kernel final : public kernel {
public:
  explicit loop_kernel(kernel*& inner) : inner_(inner) {}
  void run(kernel_context& ctx) override {
    inner_->run(ctx);
    cpu::add_layout_traffic(7);
    inner_->run(ctx);
  }

private:
  kernel*& inner_;
};

/// Kernel "inner" takes 2 ms and moves 10 bytes to change layouts. Kernel
/// "while" runs `inner` twice and moves 7 bytes itself.
std::shared_ptr<kernel_table> sleeping_kernels(kernel*& inner) {
  auto table = std::make_shared<kernel_table>();
  table->add("inner", device_kind::cpu, [](kernel_context&) {
    cpu::add_layout_traffic(10);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  });
  table->add("while", device_kind::cpu, [&inner](const attribute_map&) {
    return std::make_unique<loop_kernel>(inner);
  });
  return table;
}

} // namespace

TEST_CASE("an op takes the time from its launch to its completion") {
  watched w;
  w.run(0, 0, 1000, 1500);
  w.run(0, 1, 2000, 2100);
  w.run(1, 1, 2100, 3000);
  const auto times = w.profile.times();
  CHECK(times.steps == 2);
  CHECK(times.wall_ns == 2000);
  CHECK(times.busy_ns == std::vector<std::uint64_t>{1500});
  CHECK(times.ops.at("mul").count == 2);
  CHECK(times.ops.at("mul").total_ns == 600);
  CHECK(times.ops.at("mul").self_ns == 600);
  CHECK(times.ops.at("while").total_ns == 900);
}

TEST_CASE("the first steps do not count") {
  watched w{2};
  for (step_id s = 0; s < 3; ++s)
    w.run(0, s, 1000 * s, 1000 * s + 100);
  const auto times = w.profile.times();
  CHECK(times.steps == 1);
  CHECK(times.wall_ns == 100);
  CHECK(times.ops.at("mul").count == 1);
}

TEST_CASE("time in which steps that do not count still run is not that of "
          "others") {
  watched w{1};
  w.run(0, 1, 100, 200); // overlaps with step 0
  w.run(0, 0, 300, 1000);
  w.run(1, 1, 1000, 1500);
  const auto times = w.profile.times();
  CHECK(times.steps == 1);
  CHECK(times.wall_ns == 500);
}

TEST_CASE("an op that does not finish on its thread is not seen") {
  watched w;
  w.happens(event_kind::run_begin, 0, 0, 100);
  w.run(1, 0, 200, 300);
  w.happens(event_kind::run_end, 0, 0, 400);
  const auto times = w.profile.times();
  CHECK_FALSE(times.ops.contains("mul"));
  CHECK(times.ops.at("while").self_ns == 100);
  CHECK(times.busy_ns == std::vector<std::uint64_t>{100});
}

TEST_CASE("help with another worker's op counts as that op's time") {
  watched w;
  w.run(1, 0, 1000, 1200);
  w.happens(event_kind::help_begin, 0, 0, 1300);
  w.happens(event_kind::help_end, 0, 0, 1700);
  const auto times = w.profile.times();
  CHECK(times.busy_ns == std::vector<std::uint64_t>{600});
  CHECK(times.ops.at("while").self_ns == 200);
  CHECK(times.ops.at("mul").self_ns == 400);
  CHECK(times.ops.at("mul").total_ns == 400);
  CHECK(times.ops.at("mul").count == 0); // counts where the op was launched
  CHECK(times.wall_ns == 700);
}

TEST_CASE("help inside of an op of its own is part of that") {
  watched w;
  w.happens(event_kind::run_begin, 1, 0, 100);
  w.happens(event_kind::help_begin, 0, 0, 200);
  w.happens(event_kind::help_end, 0, 0, 300);
  w.happens(event_kind::run_end, 1, 0, 500);
  const auto times = w.profile.times();
  CHECK(times.busy_ns == std::vector<std::uint64_t>{400});
  CHECK(times.ops.at("while").self_ns == 400);
}

TEST_CASE("ops of a block count apart from the op that runs them") {
  watched w;
  kernel* of_block = nullptr;
  const auto kernels = w.profile.watched_kernels(sleeping_kernels(of_block));
  w.profile.begin(w.two_ops());
  const auto devices = make_devices(parse_devices("cpu:1"));
  const auto inner = kernels->make("inner", device_kind::cpu, {});
  of_block = inner.get();
  const auto loop_kernel = kernels->make("while", device_kind::cpu, {});
  auto ctx = no_arguments(*devices.front());
  w.happens(event_kind::run_begin, 1, 0, ticks());
  loop_kernel->run(ctx);
  w.happens(event_kind::run_end, 1, 0, ticks());
  const auto times = w.profile.times();
  const auto& block = times.ops.at("inner");
  const auto& loop = times.ops.at("while");
  CHECK(block.count == 2);
  CHECK(block.self_ns >= 4'000'000);
  CHECK(block.layout_bytes == 20);
  CHECK(loop.layout_bytes == 7);
  CHECK(loop.count == 1);
  CHECK(loop.total_ns == loop.self_ns + block.self_ns);
}

TEST_CASE("all ops of a training step are seen once per step and device") {
  constexpr std::size_t workers = 2;
  constexpr std::uint64_t steps = 4;
  const auto net = graph::build_model("mlp");
  op_profile profile{workers, 1};
  executor_options options;
  options.devices = parse_devices("cpu:2");
  options.threads = workers;
  options.loss = net.loss;
  options.hooks.trace = trace_level::ops;
  options.kernels =
    profile.watched_kernels(std::make_shared<kernel_table>(cpu_kernels()));
  options.parameters = std::make_shared<scope>();
  run_startup(net.startup, *options.parameters, 0);
  std::map<std::string, std::uint64_t> expected;
  {
    executor exe{net.main, options};
    profile.begin(exe.graph(), exe.trace());
    for (const auto& op : exe.graph().ops)
      expected[op.desc->type] += steps - 1;
    arena memory{make_host_memory_source()};
    auto image = tensor::make(memory, {4, 784}, dtype::float32);
    auto label = tensor::make(memory, {4, 1}, dtype::int64);
    std::ranges::fill(image.values<float>(), 0.5f);
    std::ranges::fill(label.values<std::int64_t>(), 3);
    for (std::uint64_t s = 0; s < steps; ++s) {
      exe.run({{"image", image}, {"label", label}});
      profile.take();
    }
  }
  const auto times = profile.times();
  CHECK(times.steps == steps - 1);
  std::map<std::string, std::uint64_t> seen;
  for (const auto& [type, time] : times.ops) {
    seen[type] = time.count;
    CHECK(time.self_ns == time.total_ns);
  }
  CHECK(seen == expected);
  CHECK(times.busy_ns.size() == workers);
  for (const auto busy : times.busy_ns)
    CHECK(busy <= times.wall_ns);
}

} // TEST_SUITE("apps.op_profile")

// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/latency_probes.hpp>

#include <troupe/actors/caf/caf.hpp>
#include <troupe/actors/configure.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/actors/workers/sharing_choice.hpp>
#include <troupe/apps/bench/delayed_run.hpp>
#include <troupe/apps/bench/task_program.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/threads.hpp>

#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

namespace troupe::apps {

namespace {

constexpr int workers = 2;

void spin_for(std::uint64_t ns) noexcept {
  const auto end = now_ns() + ns;
  while (now_ns() < end) {
  }
}

// -- hand-off -----------------------------------------------------------------

/// Begin and end of the ops of a round.
struct round_times {
  std::uint64_t ended = 0; ///< end of the first op
  /// Begin of the two ops that wait for it.
  std::array<std::atomic<std::uint64_t>, 2> began{};
};

/// The task graph of `rounds` rounds. In round r, tasks 3 r + 1 and 3 r + 2
/// wait for task 3 r. The next round waits for both.
task_graph make_rounds(std::size_t rounds) {
  task_graph g;
  const auto add = [&g](std::initializer_list<std::size_t> before) {
    for (auto b : before)
      g.predecessors.push_back(static_cast<std::uint32_t>(b));
    g.first.push_back(static_cast<std::uint32_t>(g.predecessors.size()));
  };
  for (std::size_t r = 0; r < rounds; ++r) {
    r == 0 ? add({}) : add({3 * r - 2, 3 * r - 1});
    add({3 * r});
    add({3 * r});
  }
  return g;
}

/// The first op of a round: waits for `gap_ns`.
class opening_kernel final : public kernel {
public:
  opening_kernel(round_times& times, std::uint64_t gap_ns)
    : times_(times), gap_ns_(gap_ns) {}
  void run(kernel_context&) override {
    for (auto& b : times_.began)
      b.store(0, std::memory_order_relaxed);
    spin_for(gap_ns_);
    times_.ended = now_ns();
  }

private:
  round_times& times_;
  std::uint64_t gap_ns_;
};

/// One of the two ops after it. It waits for the other one, so that each runs
/// on its own worker.
class meeting_kernel final : public kernel {
public:
  meeting_kernel(round_times& times, std::size_t number)
    : times_(times), number_(number) {}
  void run(kernel_context&) override {
    times_.began[number_].store(now_ns(), std::memory_order_release);
    while (times_.began[1 - number_].load(std::memory_order_acquire) == 0) {
    }
  }

private:
  round_times& times_;
  std::size_t number_;
};

// -- levels -------------------------------------------------------------------

executor_options two_workers(caf::actor_system* system) {
  executor_options o;
  o.threads = workers;
  o.steps_in_flight = 1;
  o.system = system;
  return o;
}

/// Computes nothing and keeps its core busy.
class busy_kernel final : public kernel {
public:
  explicit busy_kernel(std::uint64_t ns) : ns_(ns) {}
  void run(kernel_context&) override { spend_time(ns_, delay_kind::spin); }

private:
  std::uint64_t ns_;
};

/// An executor that runs a net of levels.
class level_executor {
public:
  level_executor(const level_net& net, caf::actor_system* system)
    : executor_(program_of(net), options(net, system)) {
    run(); // warm-up
  }

  /// Wall time of a step, ns.
  double run() {
    const auto begin = now_ns();
    executor_.run({});
    return static_cast<double>(now_ns() - begin);
  }

private:
  static graph::program program_of(const level_net& net) {
    return make_task_program(
      make_task_graph({"all_to_all", workers, net.levels, 0}));
  }

  static executor_options options(const level_net& net,
                                  caf::actor_system* system) {
    auto o = two_workers(system);
    o.kernels = make_task_kernels([ns = net.op_ns](std::uint32_t) {
      return std::make_unique<busy_kernel>(ns);
    });
    return o;
  }

  executor executor_;
};

// -- requests -----------------------------------------------------------------

caf::behavior answering(caf::event_based_actor*) {
  return {[](int x) { return x + 1; }};
}

/// Sends requests to an actor at intervals until it is stopped.
class asking_thread {
public:
  asking_thread(caf::actor_system& system, samples& times)
    : thread_(start_thread("troupe-probe",
                           [this, &system, &times] { ask(system, times); })) {}
  ~asking_thread() {
    stop_ = true;
    thread_.join();
  }

private:
  void ask(caf::actor_system& system, samples& times) {
    constexpr std::chrono::microseconds interval{1700};
    caf::scoped_actor self{system};
    const auto asked = system.spawn(answering);
    do {
      const auto begin = now_ns();
      actors::ask(self, asked, caf::infinite, 1)
        .receive([](int) {}, [](const caf::error&) {});
      times.add(static_cast<double>(now_ns() - begin));
      std::this_thread::sleep_for(interval);
    } while (!stop_);
  }

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

double process_time_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

} // namespace

samples handshake_times(std::size_t rounds, std::uint64_t gap_ns) {
  std::atomic<std::uint64_t> sent{0}, seen{0};
  std::uint64_t seen_at = 0; // published by the release of `seen`
  auto receiver = start_thread("troupe-probe", [&] {
    pin_this_thread(1);
    for (std::uint64_t r = 1; r <= rounds; ++r) {
      while (sent.load(std::memory_order_acquire) != r) {
      }
      seen_at = now_ns();
      seen.store(r, std::memory_order_release);
    }
  });
  samples times;
  {
    const stay_on_core sends{0};
    for (std::uint64_t r = 1; r <= rounds; ++r) {
      spin_for(gap_ns);
      const auto begin = now_ns();
      sent.store(r, std::memory_order_release);
      while (seen.load(std::memory_order_acquire) != r) {
      }
      times.add(static_cast<double>(seen_at - begin));
    }
  }
  receiver.join();
  return times;
}

samples handoff_times(std::size_t rounds, std::uint64_t gap_ns) {
  // After a few more steps the executor would keep all ops on one worker. The
  // two ops of a round would then wait for each other for ever.
  constexpr std::size_t steps = 5;
  static_assert(steps < actors::sharing_choice::short_steps_before_trials);
  // The first round of a step does not count: the other worker may have slept.
  const auto per_step = 1 + (rounds + steps - 2) / (steps - 1);
  const auto graph = make_rounds(per_step);
  std::vector<round_times> log(per_step);
  auto options = two_workers(nullptr);
  options.kernels =
    make_task_kernels([&](std::uint32_t task) -> std::unique_ptr<kernel> {
      auto& round = log[task / 3];
      if (task % 3 == 0)
        return std::make_unique<opening_kernel>(round, gap_ns);
      return std::make_unique<meeting_kernel>(round, task % 3 - 1);
    });
  executor exe{make_task_program(graph), options};
  exe.run({}); // warm-up
  samples times;
  for (std::size_t s = 1; s < steps; ++s) {
    exe.run({});
    for (std::size_t r = 1; r < per_step; ++r) {
      const auto both =
        std::max(log[r].began[0].load(), log[r].began[1].load());
      times.add(static_cast<double>(both - log[r].ended));
    }
  }
  return times;
}

samples level_times(const level_net& net, std::size_t steps,
                    caf::actor_system* system) {
  level_executor exe{net, system};
  samples times;
  for (std::size_t s = 0; s < steps; ++s)
    times.add(exe.run());
  return times;
}

shared_system_times shared_system(const level_net& net, std::size_t steps) {
  caf::actor_system_config config;
  require_system_threads(workers);
  init_message_types();
  actors::set_option(config, "scheduler.max-threads", std::size_t{workers});
  caf::actor_system system{config};
  shared_system_times times;
  {
    const asking_thread asking{system, times.idle_requests};
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  {
    const asking_thread asking{system, times.requests};
    times.steps = level_times(net, steps, &system);
  }
  return times;
}

double idle_share(std::uint64_t for_ns) {
  level_executor exe{{}, nullptr};
  exe.run();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto begin = now_ns();
  const auto used = process_time_ns();
  std::this_thread::sleep_for(std::chrono::nanoseconds(for_ns));
  return (process_time_ns() - used) / static_cast<double>(now_ns() - begin);
}

} // namespace troupe::apps

// SPDX-License-Identifier: Apache-2.0
//
// Runs graphs of executors until a number of messages has been sent. Checks by
// counting that every op runs once per step, after all ops that it waits for. A
// lost message leaves a step that never ends.
#include "training.hpp"

#include <troupe/apps/bench/task_program.hpp>
#include <troupe/base/clock.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace troupe::bench {

namespace {

struct soak_options {
  std::uint64_t messages = 1'000'000;
  int threads = 2;
  bool json = false;
};

/// How often each task of a graph has run on each device. Relaxed: the executor
/// must order the tasks, and this is what the check tests.
class run_counts {
public:
  run_counts(const apps::task_graph& graph, std::size_t devices)
    : graph_(graph), runs_(devices) {
    for (auto& of_device : runs_)
      of_device = std::make_unique<std::atomic<std::uint64_t>[]>(graph.tasks());
  }

  void ran(std::uint32_t task, const step_info& info) noexcept {
    auto& runs = runs_[static_cast<std::size_t>(info.replica)];
    auto mistakes =
      std::uint64_t{runs[task].load(std::memory_order_relaxed) != info.step};
    for (auto p : graph_.before(task))
      mistakes += runs[p].load(std::memory_order_relaxed) <= info.step;
    if (mistakes > 0)
      wrong_.fetch_add(mistakes, std::memory_order_relaxed);
    runs[task].store(info.step + 1, std::memory_order_relaxed);
  }

  /// Number of runs out of order, plus tasks that have not run exactly `steps`
  /// times.
  std::uint64_t wrong(std::uint64_t steps) const {
    auto count = wrong_.load();
    for (auto& runs : runs_)
      for (std::size_t t = 0; t < graph_.tasks(); ++t)
        count += runs[t].load() != steps;
    return count;
  }

private:
  const apps::task_graph& graph_;
  std::vector<std::unique_ptr<std::atomic<std::uint64_t>[]>> runs_;
  std::atomic<std::uint64_t> wrong_{0};
};

class counting_kernel final : public kernel {
public:
  counting_kernel(run_counts& counts, std::uint32_t task)
    : counts_(counts), task_(task) {}
  void run(kernel_context& ctx) override { counts_.ran(task_, ctx.step()); }

private:
  run_counts& counts_;
  std::uint32_t task_;
};

/// An executor that is soaked.
class soaked {
public:
  virtual ~soaked() = default;

  /// Runs steps until `messages` more have been sent.
  void run(std::uint64_t messages) {
    const auto steps = messages / stats().messages_per_step + 1;
    std::deque<step_id> under_way;
    for (std::uint64_t s = 0; s < steps; ++s) {
      if (under_way.size() == in_flight_)
        wait_for_first(under_way);
      under_way.push_back(executor_->submit(feeds_));
    }
    while (!under_way.empty())
      wait_for_first(under_way);
  }

  executor_stats stats() const { return executor_->stats(); }
  virtual std::uint64_t wrong() const { return 0; }

protected:
  std::unique_ptr<executor> executor_; // made by derived classes
  feed_map feeds_;
  std::size_t in_flight_ = 1;

private:
  void wait_for_first(std::deque<step_id>& under_way) {
    executor_->wait(under_way.front());
    under_way.pop_front();
  }
};

/// Tasks of a pattern, with kernels that check their order.
class soaked_tasks final : public soaked {
public:
  soaked_tasks(const char* pattern, const char* devices,
               std::uint32_t in_flight, const soak_options& o)
    : graph_(apps::make_task_graph({pattern, 16, 32, 3})),
      counts_(graph_, parse_devices(devices).size()) {
    executor_options options;
    options.devices = parse_devices(devices);
    options.threads = o.threads;
    options.steps_in_flight = in_flight;
    options.kernels = apps::make_task_kernels([this](std::uint32_t task) {
      return std::make_unique<counting_kernel>(counts_, task);
    });
    in_flight_ = in_flight;
    executor_ =
      std::make_unique<executor>(apps::make_task_program(graph_), options);
  }
  ~soaked_tasks() override { executor_.reset(); }

  std::uint64_t wrong() const override { return counts_.wrong(stats().steps); }

private:
  apps::task_graph graph_;
  run_counts counts_;
};

/// Training steps of a model without its kernels (a dry run). Devices wait for
/// each other.
class soaked_model final : public soaked {
public:
  soaked_model(const char* name, std::uint32_t in_flight,
               const soak_options& o) {
    const auto net = graph::build_model(name);
    executor_options options;
    options.devices = parse_devices("cpu:2");
    options.threads = o.threads;
    options.steps_in_flight = in_flight;
    options.loss = net.loss;
    options.hooks.dry_run = true;
    feeds_ = random_batches(net, 2, 1, memory_).front();
    in_flight_ = in_flight;
    executor_ = std::make_unique<executor>(net.main, options);
  }

private:
  arena memory_{make_host_memory_source()};
};

std::vector<std::unique_ptr<soaked>> all_soaked(const soak_options& o) {
  std::vector<std::unique_ptr<soaked>> all;
  for (std::uint32_t in_flight : {1, 2, 5}) {
    for (auto* pattern : {"stencil_1d", "all_to_all", "random_nearest"})
      all.push_back(
        std::make_unique<soaked_tasks>(pattern, "cpu", in_flight, o));
    all.push_back(std::make_unique<soaked_tasks>("fft", "cpu:2", in_flight, o));
    all.push_back(std::make_unique<soaked_model>("mlp", in_flight, o));
  }
  return all;
}

int run(const soak_options& o) {
  auto all = all_soaked(o);
  // Several rounds, so that workers also fall asleep and wake up.
  constexpr std::uint64_t rounds = 20;
  const auto share = o.messages / (rounds * all.size()) + 1;
  const auto begin = now_ns();
  const bool terminal = isatty(STDERR_FILENO) == 1;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    if (terminal)
      std::fprintf(stderr, "\rround %llu/%llu",
                   static_cast<unsigned long long>(round + 1),
                   static_cast<unsigned long long>(rounds));
    for (auto& s : all)
      s->run(share);
  }
  if (terminal)
    std::fputs("\r\033[K", stderr);
  const auto seconds = static_cast<double>(now_ns() - begin) / 1e9;
  std::uint64_t messages = 0, steps = 0, wrong = 0;
  for (auto& s : all) {
    messages += s->stats().messages;
    steps += s->stats().steps;
    wrong += s->wrong();
  }
  if (o.json)
    std::printf("%s\n", nlohmann::ordered_json{{"messages", messages},
                                               {"steps", steps},
                                               {"graphs", all.size()},
                                               {"threads", o.threads},
                                               {"wrong", wrong},
                                               {"seconds", seconds}}
                          .dump()
                          .c_str());
  else
    std::printf("%llu messages in %llu steps of %zu graphs, %llu wrong, %.1f "
                "s\n",
                static_cast<unsigned long long>(messages),
                static_cast<unsigned long long>(steps), all.size(),
                static_cast<unsigned long long>(wrong), seconds);
  return wrong == 0 ? 0 : 1;
}

} // namespace

} // namespace troupe::bench

int main(int argc, char** argv) {
  troupe::bench::soak_options o;
  CLI::App app{"Sends messages through the graphs of executors and counts what "
               "arrives"};
  app.add_option("--messages", o.messages, "how many at least")
    ->check(CLI::PositiveNumber)
    ->capture_default_str();
  app.add_option("--threads", o.threads, "workers of each executor")
    ->check(CLI::PositiveNumber)
    ->capture_default_str();
  app.add_flag("--json", o.json, "answer with one JSON object");
  CLI11_PARSE(app, argc, argv);
  return troupe::bench::run(o);
}

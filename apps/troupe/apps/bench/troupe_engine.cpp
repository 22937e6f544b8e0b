// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/task_engine.hpp>

#include <troupe/actors/executor.hpp>
#include <troupe/apps/bench/sampling.hpp>
#include <troupe/apps/bench/task_program.hpp>
#include <troupe/base/clock.hpp>

#include <utility>

namespace troupe::apps {

namespace {

class task_kernel final : public kernel {
public:
  task_kernel(task_work& work, std::uint32_t task) : work_(work), task_(task) {}
  void run(kernel_context&) override { work_.run(task_); }

private:
  task_work& work_;
  std::uint32_t task_;
};

class troupe_engine final : public task_engine {
public:
  troupe_engine(const task_graph& tasks, task_work& work, int threads,
                edge_form form)
    : troupe_engine(describe(tasks), options(work, threads, form)) {}

  void run_pass() override { executor_.run({}); }
  description_cost description() const override { return description_; }
  std::uint64_t messages() const override {
    return executor_.stats().messages_per_step;
  }

private:
  struct described_tasks {
    std::shared_ptr<const graph::program> program;
    description_cost cost;
  };

  troupe_engine(const described_tasks& tasks, executor_options options)
    : description_(tasks.cost), executor_(tasks.program, std::move(options)) {}

  static described_tasks describe(const task_graph& tasks) {
    const auto heap = heap_bytes();
    const auto begin = now_ns();
    auto program =
      std::make_shared<const graph::program>(make_task_program(tasks));
    return {std::move(program),
            {heap_bytes() - heap, static_cast<double>(now_ns() - begin)}};
  }

  static executor_options options(task_work& work, int threads,
                                  edge_form form) {
    executor_options o;
    o.threads = threads;
    o.steps_in_flight = 1; // a pass at a time
    o.hooks.form = form;
    o.kernels = make_task_kernels([&work](std::uint32_t task) {
      return std::make_unique<task_kernel>(work, task);
    });
    return o;
  }

  description_cost description_;
  executor executor_;
};

} // namespace

std::unique_ptr<task_engine> make_troupe_engine(const task_graph& tasks,
                                                task_work& work, int threads) {
  return std::make_unique<troupe_engine>(tasks, work, threads,
                                         edge_form::counter);
}

std::unique_ptr<task_engine> make_troupe_message_engine(const task_graph& tasks,
                                                        task_work& work,
                                                        int threads) {
  return std::make_unique<troupe_engine>(tasks, work, threads,
                                         edge_form::message);
}

} // namespace troupe::apps

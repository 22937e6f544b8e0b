// SPDX-License-Identifier: Apache-2.0
// The two algorithms of Paddle Fluid's ParallelExecutor, as fast as a shared
// queue allows.
// Source: Paddle, details/fast_threaded_ssa_graph_executor.cc and
// details/threaded_ssa_graph_executor.cc.

#include <troupe/apps/bench/ready_queue.hpp>
#include <troupe/apps/bench/task_engine.hpp>

namespace troupe::apps {

namespace {

/// FastThreadedSSAGraphExecutor.
class ready_queue_engine final : public task_engine {
public:
  ready_queue_engine(const task_graph& graph, task_work& work, int threads)
    : queue_(graph, threads, run_task{work}) {}

  void run_pass() override { queue_.run_pass(); }

private:
  struct run_task {
    task_work& work;
    void operator()(std::uint32_t task) const { work.run(task); }
  };

  ready_queue<run_task> queue_;
};

/// ThreadedSSAGraphExecutor. A master thread does all the counting; the pool
/// runs ops and reports the variables that they have written.
class ready_variables_engine final : public task_engine {
public:
  ready_variables_engine(const task_graph& graph, task_work& work, int threads)
    : graph_(graph), successors_(graph.successors()), missing_(graph.tasks()),
      pool_(threads, [this, &work](std::uint32_t task) {
        work.run(task);
        made_.push(task);
      }) {}

  void run_pass() override {
    for (std::uint32_t t = 0; t < graph_.tasks(); ++t) {
      missing_[t] = static_cast<std::uint32_t>(graph_.before(t).size());
      if (missing_[t] == 0)
        pool_.push(t);
    }
    for (auto left = graph_.tasks(); left > 0; --left) {
      std::uint32_t variable = 0;
      made_.pop(variable);
      for (auto s : successors_[variable])
        if (--missing_[s] == 0)
          pool_.push(s);
    }
  }

private:
  const task_graph& graph_;
  std::vector<std::vector<std::uint32_t>> successors_;
  std::vector<std::uint32_t> missing_; // used only by the master
  blocking_queue<std::uint32_t> made_;
  thread_pool pool_;
};

} // namespace

std::unique_ptr<task_engine>
make_ready_queue_engine(const task_graph& graph, task_work& work, int threads) {
  return std::make_unique<ready_queue_engine>(graph, work, threads);
}

std::unique_ptr<task_engine>
make_ready_variables_engine(const task_graph& graph, task_work& work,
                            int threads) {
  return std::make_unique<ready_variables_engine>(graph, work, threads);
}

} // namespace troupe::apps

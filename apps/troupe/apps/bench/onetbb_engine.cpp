// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/task_engine.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/threads.hpp>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_scheduler_observer.h>

#include <deque>
#include <optional>

namespace troupe::apps {

namespace {

namespace flow = tbb::flow;

/// Pins the arena's threads to cores if Troupe pins its workers: thread i to
/// core i. The caller is thread 0; it is pinned while it runs a pass.
class thread_binding final : public tbb::task_scheduler_observer {
public:
  thread_binding(tbb::task_arena& arena, int threads)
    : tbb::task_scheduler_observer(arena),
      binds_(take_all_cores(static_cast<std::size_t>(threads))) {
    observe(binds_);
  }
  ~thread_binding() override { observe(false); }

  void on_scheduler_entry(bool is_worker) override {
    if (is_worker)
      pin_this_thread(
        static_cast<std::size_t>(tbb::this_task_arena::current_thread_index()));
  }
  bool binds() const noexcept { return binds_; }

private:
  bool binds_;
};

template <class... Policy>
class onetbb_flow_graph final : public task_engine {
public:
  onetbb_flow_graph(const task_graph& tasks, task_work& work, int threads)
    : limit_(tbb::global_control::max_allowed_parallelism,
             static_cast<std::size_t>(threads)),
      arena_(threads), binding_(arena_, threads) {
    require_threads(static_cast<std::size_t>(threads - 1));
    arena_.execute([&] { build(tasks, work); });
  }

  void run_pass() override {
    std::optional<stay_on_core> stays;
    if (binding_.binds())
      stays.emplace(std::size_t{0});
    arena_.execute([this] {
      for (auto* n : first_)
        n->try_put(flow::continue_msg{});
      graph_->wait_for_all();
    });
  }

private:
  using node = flow::continue_node<flow::continue_msg, Policy...>;

  void build(const task_graph& tasks, task_work& work) {
    graph_ = std::make_unique<flow::graph>();
    // A lightweight node runs in place only if its function is noexcept.
    for (std::uint32_t t = 0; t < tasks.tasks(); ++t)
      nodes_.emplace_back(*graph_,
                          [&work, t](const flow::continue_msg&) noexcept {
                            work.run(t);
                            return flow::continue_msg{};
                          });
    for (std::uint32_t t = 0; t < tasks.tasks(); ++t) {
      for (auto before : tasks.before(t))
        flow::make_edge(nodes_[before], nodes_[t]);
      if (tasks.before(t).empty())
        first_.push_back(&nodes_[t]);
    }
  }

  tbb::global_control limit_;
  tbb::task_arena arena_;
  thread_binding binding_;
  std::unique_ptr<flow::graph> graph_;
  std::deque<node> nodes_;
  std::vector<node*> first_;
};

template <class... Policy>
std::unique_ptr<task_engine> make(const task_graph& tasks, task_work& work,
                                  int threads) {
  return std::make_unique<onetbb_flow_graph<Policy...>>(tasks, work, threads);
}

} // namespace

engine_factory onetbb_engine() {
  return make<>;
}

engine_factory onetbb_lightweight_engine() {
  return make<flow::lightweight>;
}

} // namespace troupe::apps

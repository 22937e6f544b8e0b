// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/task_engine.hpp>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <deque>

namespace troupe::apps {

namespace {

namespace flow = tbb::flow;
using node = flow::continue_node<flow::continue_msg>;

class onetbb_flow_graph final : public task_engine {
public:
  onetbb_flow_graph(const task_graph& tasks, task_work& work, int threads)
    : limit_(tbb::global_control::max_allowed_parallelism,
             static_cast<std::size_t>(threads)),
      arena_(threads) {
    arena_.execute([&] { build(tasks, work); });
  }

  void run_pass() override {
    arena_.execute([this] {
      for (auto* n : first_)
        n->try_put(flow::continue_msg{});
      graph_->wait_for_all();
    });
  }

private:
  void build(const task_graph& tasks, task_work& work) {
    graph_ = std::make_unique<flow::graph>();
    for (std::uint32_t t = 0; t < tasks.tasks(); ++t)
      nodes_.emplace_back(
        *graph_, [&work, t](const flow::continue_msg&) { work.run(t); });
    for (std::uint32_t t = 0; t < tasks.tasks(); ++t) {
      for (auto before : tasks.before(t))
        flow::make_edge(nodes_[before], nodes_[t]);
      if (tasks.before(t).empty())
        first_.push_back(&nodes_[t]);
    }
  }

  tbb::global_control limit_;
  tbb::task_arena arena_;
  std::unique_ptr<flow::graph> graph_;
  std::deque<node> nodes_;
  std::vector<node*> first_;
};

std::unique_ptr<task_engine> make(const task_graph& tasks, task_work& work,
                                  int threads) {
  return std::make_unique<onetbb_flow_graph>(tasks, work, threads);
}

} // namespace

engine_factory onetbb_engine() {
  return make;
}

} // namespace troupe::apps

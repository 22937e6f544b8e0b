// SPDX-License-Identifier: Apache-2.0
// Runs one actor per task without counting mailboxes: with CAF's own
// behaviours, mailboxes and scheduler.

#include <troupe/actors/caf/caf.hpp>
#include <troupe/actors/configure.hpp>
#include <troupe/apps/bench/task_engine.hpp>

#include <caf/event_based_actor.hpp>

CAF_BEGIN_TYPE_ID_BLOCK(troupe_bench, troupe::actors::type_ids::bench)
CAF_ADD_ATOM(troupe_bench, troupe::apps, ready_task, "ready")
CAF_ADD_ATOM(troupe_bench, troupe::apps, stop_task, "stop")
CAF_END_TYPE_ID_BLOCK(troupe_bench)

namespace troupe::apps {

namespace {

class caf_engine final : public task_engine {
public:
  caf_engine(const task_graph& tasks, task_work& work, int threads)
    : tasks_(tasks), work_(work), successors_(tasks.successors()) {
    require_system_threads(static_cast<std::size_t>(threads));
    init_message_types();
    actors::register_types<caf::id_block::troupe_bench>();
    actors::set_option(config_, "scheduler.max-threads",
                       static_cast<std::size_t>(threads));
    system_ = std::make_unique<caf::actor_system>(config_);
    for (std::uint32_t t = 0; t < tasks.tasks(); ++t)
      actors_.push_back(system_->spawn(
        [this, t](caf::event_based_actor* self) { return behave(self, t); }));
  }

  ~caf_engine() override {
    for (auto& a : actors_)
      actors::post(a, stop_task_v);
    actors_.clear();
  }

  void run_pass() override {
    remaining_.store(tasks_.tasks(), std::memory_order_relaxed);
    for (std::uint32_t t = 0; t < tasks_.tasks(); ++t)
      if (tasks_.before(t).empty())
        actors::post(actors_[t], ready_task_v);
    for (auto left = remaining_.load(std::memory_order_acquire); left > 0;
         left = remaining_.load(std::memory_order_acquire))
      remaining_.wait(left, std::memory_order_acquire);
  }

  std::uint64_t messages() const override { return tasks_.edges(); }

private:
  caf::behavior behave(caf::event_based_actor* self, std::uint32_t task) {
    const auto wanted = std::max<std::size_t>(1, tasks_.before(task).size());
    return {
      [this, self, task, wanted, arrived = std::size_t{0}](ready_task) mutable {
        if (++arrived < wanted)
          return;
        arrived = 0;
        work_.run(task);
        for (auto s : successors_[task])
          actors::send(self, actors_[s], ready_task_v);
        if (remaining_.fetch_sub(1, std::memory_order_acq_rel) == 1)
          remaining_.notify_one();
      },
      [self](stop_task) { self->quit(); }};
  }

  const task_graph& tasks_;
  task_work& work_;
  std::vector<std::vector<std::uint32_t>> successors_;
  std::atomic<std::size_t> remaining_{0};
  std::vector<caf::actor> actors_;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
};

} // namespace

std::unique_ptr<task_engine> make_caf_engine(const task_graph& tasks,
                                             task_work& work, int threads) {
  return std::make_unique<caf_engine>(tasks, work, threads);
}

} // namespace troupe::apps

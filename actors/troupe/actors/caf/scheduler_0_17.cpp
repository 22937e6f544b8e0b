// SPDX-License-Identifier: Apache-2.0
// CAF 0.17 takes a policy for the workers of its own coordinator.
#include <troupe/actors/caf/inside.hpp>

#if CAF_MAJOR_VERSION == 0

#include <troupe/actors/workers/queue_policy.hpp>
#include <troupe/actors/workers/running_jobs.hpp>

#include <caf/scheduler/coordinator.hpp>

#include <memory>
#include <utility>

namespace troupe::actors {

namespace {

thread_local worker_thread this_thread;

void enqueue(job_queue& queue, caf::resumable* target) {
  queue.push_guest(target);
}

/// Scheduling policy for caf::scheduler::coordinator. `dequeue` runs Troupe's
/// jobs and returns CAF's own resumables.
class policy {
public:
  struct coordinator_data {
    explicit coordinator_data(caf::scheduler::abstract_coordinator*) {}
    std::unique_ptr<job_queue> queue;
    std::atomic<int> pools{0}; // number of pools that share the queue
  };

  struct worker_data {
    // The coordinator constructs this once, when the number of workers is known
    // and before any of them starts. It then copies it into each worker.
    explicit worker_data(caf::scheduler::abstract_coordinator* parent) {
      auto& data =
        static_cast<caf::scheduler::coordinator<policy>*>(parent)->data();
      data.queue = std::make_unique<job_queue>(parent->num_workers());
    }
    bool begun = false;
  };

  template <class Coordinator>
  void central_enqueue(Coordinator* self, caf::resumable* target) {
    enqueue(*self->data().queue, target);
  }

  template <class Worker>
  void external_enqueue(Worker* self, caf::resumable* target) {
    enqueue(*self->parent()->data().queue, target);
  }

  template <class Worker>
  void internal_enqueue(Worker* self, caf::resumable* target) {
    enqueue(*self->parent()->data().queue, target);
  }

  template <class Worker>
  void resume_job_later(Worker* self, caf::resumable* target) {
    enqueue(*self->parent()->data().queue, target);
  }

  template <class Worker>
  caf::resumable* dequeue(Worker* self) {
    auto& queue = *self->parent()->data().queue;
    if (!std::exchange(self->data().begun, true)) {
      this_thread = {&queue, self->id()};
      begin_worker(self->id(), queue.workers());
    }
    worker here{queue, self->id()};
    for (;;) {
      const auto found = queue.wait(self->id());
      if (found.guest)
        return static_cast<caf::resumable*>(found.guest);
      const running_jobs here_now{self->system()};
      here.run_chain(*found.work);
    }
  }

  template <class Worker>
  void before_resume(Worker*, caf::resumable*) {}
  template <class Worker>
  void after_resume(Worker*, caf::resumable*) {}
  template <class Worker>
  void after_completion(Worker*, caf::resumable*) {}
  template <class Worker>
  void before_shutdown(Worker*) {}

  template <class Worker, class F>
  void foreach_resumable(Worker*, F) {}

  template <class Coordinator, class F>
  void foreach_central_resumable(Coordinator* self, F f) {
    // All workers have left. Executors are destroyed before their system, so
    // only CAF's resumables are left.
    while (auto* guest = self->data().queue->pop_guest())
      f(static_cast<caf::resumable*>(guest));
  }
};

using coordinator = caf::scheduler::coordinator<policy>;

} // namespace

void configure_scheduler(caf::actor_system_config& config,
                         std::size_t workers) {
  set_option(config, "scheduler.max-threads", workers);
  config.load<coordinator>();
}

std::unique_ptr<caf::actor_system>
make_scheduled_system(caf::actor_system_config& config) {
  return std::make_unique<caf::actor_system>(config);
}

std::size_t threads_of_caf() noexcept {
  constexpr std::size_t clock = 1, printer = 1;
  return clock + printer;
}

policy_queue policy_queue_of(caf::actor_system& sys) {
  auto* own = dynamic_cast<coordinator*>(&sys.scheduler());
  return own ? policy_queue{own->data().queue.get(), &own->data().pools}
             : policy_queue{};
}

const worker_thread& this_worker_thread() noexcept {
  return this_thread;
}

std::size_t workers_of(caf::actor_system& system) {
  return system.scheduler().num_workers();
}

void run_on_worker(caf::actor_system& system, worker_task* task) {
  system.scheduler().enqueue(task);
}

} // namespace troupe::actors

#endif

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
/// jobs and returns CAF's own resumables. If there is a stand-in, it is CAF's
/// last worker.
template <std::size_t StandIns>
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
      const auto threads = parent->num_workers();
      data.queue = std::make_unique<job_queue>(
        threads > StandIns ? threads - StandIns : 1);
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
    const bool stands_in = self->id() >= queue.workers();
    if (!std::exchange(self->data().begun, true))
      begin(queue, self->id(), stands_in);
    if (stands_in) // nobody stops the queue: CAF ends its workers by a guest
      return static_cast<caf::resumable*>(queue.wait_for_guest());
    worker here{queue, self->id()};
    for (;;) {
      const auto found = queue.wait(self->id());
      if (found.guest)
        return static_cast<caf::resumable*>(found.guest);
      const running_jobs here_now{self->system()};
      here.run_chain(*found.work);
    }
  }

  static void begin(job_queue& queue, std::size_t index, bool stands_in) {
    if (stands_in)
      return begin_stand_in();
    this_thread = {&queue, index};
    begin_worker(index, queue.workers());
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

template <std::size_t StandIns>
using coordinator = caf::scheduler::coordinator<policy<StandIns>>;

/// That of a system whose coordinator is of this type; else nothing.
template <class Coordinator>
policy_queue queue_in(caf::actor_system& sys) {
  auto* own = dynamic_cast<Coordinator*>(&sys.scheduler());
  return own ? policy_queue{own->data().queue.get(), &own->data().pools}
             : policy_queue{};
}

} // namespace

void configure_scheduler(caf::actor_system_config& config, scheduling how) {
  set_option(config, "scheduler.max-threads",
             how.workers + (how.with_stand_in ? 1 : 0));
  if (how.with_stand_in)
    config.load<coordinator<1>>();
  else
    config.load<coordinator<0>>();
}

std::unique_ptr<caf::actor_system>
make_scheduled_system(caf::actor_system_config& config, scheduling) {
  return std::make_unique<caf::actor_system>(config);
}

std::size_t threads_of_caf() noexcept {
  constexpr std::size_t clock = 1, printer = 1;
  return clock + printer;
}

policy_queue policy_queue_of(caf::actor_system& sys) {
  const auto found = queue_in<coordinator<1>>(sys);
  return found.queue ? found : queue_in<coordinator<0>>(sys);
}

const worker_thread& this_worker_thread() noexcept {
  return this_thread;
}

std::size_t workers_of(caf::actor_system& system) {
  const auto own = policy_queue_of(system).queue;
  return own ? own->workers() : system.scheduler().num_workers();
}

void run_on_worker(caf::actor_system& system, worker_task* task) {
  system.scheduler().enqueue(task);
}

} // namespace troupe::actors

#endif

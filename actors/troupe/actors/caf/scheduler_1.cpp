// SPDX-License-Identifier: Apache-2.0
// CAF 1.x takes a whole scheduler, but only from the constructor of a system.
#include <troupe/actors/caf/inside.hpp>

#if CAF_MAJOR_VERSION == 1

#include <troupe/actors/workers/queue_policy.hpp>
#include <troupe/actors/workers/running_jobs.hpp>

#include <caf/defaults.hpp>
#include <caf/detail/actor_system_access.hpp>
#include <caf/detail/cleanup_and_release.hpp>
#include <caf/thread_owner.hpp>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

namespace troupe::actors {

namespace {

constexpr const char* workers_key = "caf.scheduler.max-threads";

thread_local worker_thread this_thread;

/// Ends the worker that finds it.
class end_of_work final : public caf::resumable {
public:
  resume_result resume(context, std::size_t) override {
    return shutdown_execution_unit;
  }
  void ref_resumable() const noexcept override {}
  void deref_resumable() const noexcept override {}
};

/// Workers take Troupe's jobs and CAF's actors from the same queue.
class queue_scheduler final : public caf::scheduler {
public:
  queue_scheduler(caf::actor_system& system, scheduling how)
    : system_(system), has_stand_in_(how.with_stand_in), queue_(how.workers) {}

  void schedule(caf::resumable* what) override { queue_.push_guest(what); }
  void delay(caf::resumable* what) override { queue_.push_guest(what); }

  void start() override {
    for (std::size_t i = 0; i < queue_.workers(); ++i)
      threads_.push_back(system_.launch_thread("troupe.worker",
                                               caf::thread_owner::scheduler,
                                               [this, i] { serve(i); }));
    if (has_stand_in_)
      threads_.push_back(system_.launch_thread("troupe.stand-in",
                                               caf::thread_owner::scheduler,
                                               [this] { stand_in(); }));
  }

  void stop() override {
    for (std::size_t i = 0; i < threads_.size(); ++i)
      queue_.push_guest(&end_);
    for (auto& thread : threads_)
      thread.join();
    // Executors are destroyed before their system, so only CAF's resumables are
    // left.
    while (auto* guest = queue_.pop_guest())
      caf::detail::cleanup_and_release(static_cast<caf::resumable*>(guest));
  }

  policy_queue shared() noexcept { return {&queue_, &pools_}; }

private:
  void serve(std::size_t index) {
    this_thread = {&queue_, index};
    begin_worker(index, queue_.workers());
    worker here{queue_, index};
    for (bool goes_on = true; goes_on;) {
      const auto found = queue_.wait(index);
      if (found.guest) {
        goes_on = resume(*static_cast<caf::resumable*>(found.guest));
        continue;
      }
      const running_jobs here_now{system_};
      here.run_chain(*found.work);
    }
  }

  /// Nobody stops the queue: the last guest of a thread is `end_`.
  void stand_in() {
    begin_stand_in();
    while (resume(*static_cast<caf::resumable*>(queue_.wait_for_guest()))) {
    }
  }

  /// False if the thread is to end.
  bool resume(caf::resumable& actor) {
    switch (actor.resume(this, throughput_)) {
    case caf::resumable::resume_later: queue_.push_guest(&actor); return true;
    case caf::resumable::awaiting_message:
    case caf::resumable::done: intrusive_ptr_release(&actor); return true;
    case caf::resumable::shutdown_execution_unit: return false;
    }
    return true;
  }

  caf::actor_system& system_;
  bool has_stand_in_;
  std::size_t throughput_ =
    get_or(system_.config(), "caf.scheduler.max-throughput",
           caf::defaults::scheduler::max_throughput);
  job_queue queue_;
  std::atomic<int> pools_{0}; // number of pools that share the queue
  end_of_work end_;
  std::vector<std::thread> threads_;
};

void install_scheduler(caf::actor_system& system,
                       caf::actor_system_config& config, void* how) {
  auto wanted = *static_cast<scheduling*>(how);
  wanted.workers = get_or(config, workers_key, std::size_t{1});
  caf::detail::actor_system_access{system}.scheduler(
    std::make_unique<queue_scheduler>(system, wanted));
}

} // namespace

void configure_scheduler(caf::actor_system_config& config, scheduling how) {
  set_option(config, "scheduler.max-threads", how.workers);
}

std::unique_ptr<caf::actor_system>
make_scheduled_system(caf::actor_system_config& config, scheduling how) {
  return std::make_unique<caf::actor_system>(config, install_scheduler, &how);
}

std::size_t threads_of_caf() noexcept {
  constexpr std::size_t clock = 1, printer = 1;
  return clock + printer;
}

policy_queue policy_queue_of(caf::actor_system& sys) {
  auto* own = dynamic_cast<queue_scheduler*>(&sys.scheduler());
  return own ? own->shared() : policy_queue{};
}

const worker_thread& this_worker_thread() noexcept {
  return this_thread;
}

std::size_t workers_of(caf::actor_system& system) {
  if (const auto own = policy_queue_of(system).queue)
    return own->workers();
  // What CAF starts if nothing else is configured.
  const auto usual =
    std::max<std::size_t>(std::thread::hardware_concurrency(), 4);
  return get_or(system.config(), workers_key, usual);
}

void run_on_worker(caf::actor_system& system, worker_task* task) {
  system.scheduler().schedule(task);
}

} // namespace troupe::actors

#endif

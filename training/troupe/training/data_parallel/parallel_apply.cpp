// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data_parallel/parallel_apply.hpp>

#include <troupe/actors/caf/inside.hpp>
#include <troupe/actors/configure.hpp>

#include <caf/event_based_actor.hpp>

#include <cstddef>
#include <exception>
#include <latch>
#include <memory>

CAF_BEGIN_TYPE_ID_BLOCK(troupe_parallel, troupe::actors::type_ids::parallel)
CAF_ADD_ATOM(troupe_parallel, troupe::parallel, run_task, "run")
CAF_END_TYPE_ID_BLOCK(troupe_parallel)

namespace troupe::parallel {

namespace {

/// What the thread that waits and the actors share. It is theirs together: the
/// last task may wake that thread before it has let go of the latch.
struct joint_run {
  explicit joint_run(std::span<const std::function<void()>> all)
    : tasks(all), failures(all.size()),
      running(static_cast<std::ptrdiff_t>(all.size())) {}

  std::span<const std::function<void()>> tasks;
  std::vector<std::exception_ptr> failures; // of task i: its actor's, until
                                            // the latch has counted it
  std::latch running;
};

/// Runs one task, when it is told to. If it is gone before, the task has
/// failed.
class replica_actor final : public caf::event_based_actor {
public:
  replica_actor(caf::actor_config& cfg, std::shared_ptr<joint_run> run,
                std::size_t number)
    : event_based_actor(cfg), run_(std::move(run)), number_(number) {}

  ~replica_actor() override {
    if (run_)
      end(std::make_exception_ptr(
        error(errc::peer_failure, "its actor has ended")));
  }

  const char* name() const override { return "replica"; }

protected:
  caf::behavior make_behavior() override {
    return {[this](run_task) {
      std::exception_ptr failure;
      try {
        run_->tasks[number_]();
      } catch (...) {
        failure = std::current_exception();
      }
      end(std::move(failure));
    }};
  }

private:
  /// Counts the task: once, as `run_` is then gone.
  void end(std::exception_ptr failure) noexcept {
    const auto run = std::move(run_);
    run->failures[number_] = std::move(failure);
    run->running.count_down();
  }

  std::shared_ptr<joint_run> run_;
  std::size_t number_;
};

/// A system's destructor waits for the threads that have spawned actors in it.
/// This one lets go, because the system may end before the thread does.
struct forgets_system {
  ~forgets_system() { actors::forget_system(); }
};

/// What the exception says, as an error.
error as_error(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const error& e) {
    return e;
  } catch (const std::exception& e) {
    return {errc::kernel_failure, e.what()};
  } catch (...) {
    return {errc::kernel_failure, "an exception of unknown type"};
  }
}

std::string replica_name(std::size_t i, device_id on) {
  return "replica " + std::to_string(i) + " on " + to_string(on);
}

[[noreturn]] void throw_first(std::span<const std::exception_ptr> failures,
                              std::size_t first,
                              std::span<const device_id> on) {
  const auto cause = as_error(failures[first]);
  auto text = "in " + replica_name(first, on[first]) + ": " + cause.message();
  for (auto i = first + 1; i < failures.size(); ++i)
    if (failures[i])
      text += "; also failed: " + replica_name(i, on[i]);
  const auto whole = error(cause.code(), text, cause.where())
                       .with_context({.device = to_string(on[first])});
  try {
    std::rethrow_exception(failures[first]);
  } catch (...) {
    std::throw_with_nested(whole);
  }
}

void start(caf::actor_system& system, const std::shared_ptr<joint_run>& run) {
  const forgets_system at_end;
  std::vector<caf::actor> replicas;
  for (std::size_t i = 0; i < run->tasks.size(); ++i)
    replicas.push_back(system.spawn<replica_actor>(run, i));
  try {
    for (auto& each : replicas)
      actors::post(each, run_task_v);
  } catch (...) {
    // Those that run use what the caller owns. The others end with their last
    // handle.
    replicas.clear();
    run->running.wait();
    throw;
  }
}

} // namespace

void run_replicas(caf::actor_system& system, std::span<const device_id> on,
                  std::span<const std::function<void()>> tasks) {
  if (on.size() != tasks.size())
    throw error(errc::invalid_argument,
                std::to_string(on.size()) + " devices for "
                  + std::to_string(tasks.size()) + " tasks");
  init_message_types();
  actors::register_types<caf::id_block::troupe_parallel>();
  const auto run = std::make_shared<joint_run>(tasks);
  start(system, run);
  run->running.wait();
  for (std::size_t i = 0; i < tasks.size(); ++i)
    if (run->failures[i])
      throw_first(run->failures, i, on);
}

} // namespace troupe::parallel

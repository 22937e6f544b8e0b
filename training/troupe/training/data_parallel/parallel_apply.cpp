// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data_parallel/parallel_apply.hpp>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/logger.hpp>
#include <caf/scoped_actor.hpp>

#include <exception>
#include <memory>

namespace troupe::parallel {

namespace {

using run_task = caf::atom_constant<caf::atom("run")>;

/// Runs one task, when it is told to.
class replica_actor final : public caf::event_based_actor {
public:
  replica_actor(caf::actor_config& cfg, const std::function<void()>& task,
                std::exception_ptr& failure)
    : event_based_actor(cfg), task_(task), failure_(failure) {}

  const char* name() const override { return "replica"; }

protected:
  caf::behavior make_behavior() override {
    return {[this](run_task) {
      try {
        task_();
      } catch (...) {
        failure_ = std::current_exception();
      }
    }};
  }

private:
  // Of the thread that waits for the answer: the message orders the accesses.
  const std::function<void()>& task_;
  std::exception_ptr& failure_;
};

/// CAF keeps a reference to a system's logger in each thread that spawns an
/// actor, and the system's destructor waits until no thread has one. This lets
/// go of it, because a system may end before the thread does.
struct no_logger_after {
  ~no_logger_after() { caf::logger::set_current_actor_system(nullptr); }
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

} // namespace

void run_replicas(caf::actor_system& system, std::span<const device_id> on,
                  std::span<const std::function<void()>> tasks) {
  if (on.size() != tasks.size())
    throw error(errc::invalid_argument,
                std::to_string(on.size()) + " devices for "
                  + std::to_string(tasks.size()) + " tasks");
  std::vector<std::exception_ptr> failures(tasks.size());
  {
    const no_logger_after at_end;
    caf::scoped_actor self{system};
    using answer = decltype(self->request(std::declval<caf::actor>(),
                                          caf::infinite, run_task::value));
    std::vector<answer> answers;
    for (std::size_t i = 0; i < tasks.size(); ++i)
      answers.push_back(
        self->request(system.spawn<replica_actor>(tasks[i], failures[i]),
                      caf::infinite, run_task::value));
    for (std::size_t i = 0; i < answers.size(); ++i)
      answers[i].receive(
        [] {},
        [&](const caf::error& why) {
          failures[i] = std::make_exception_ptr(error(
            errc::peer_failure, "its actor has ended: " + caf::to_string(why)));
        });
  }
  for (std::size_t i = 0; i < failures.size(); ++i)
    if (failures[i])
      throw_first(failures, i, on);
}

} // namespace troupe::parallel

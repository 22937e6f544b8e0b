// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/kernels/device.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace caf {
class actor_system;
} // namespace caf

namespace troupe::parallel {

/// Runs each task on an actor of its own, named "replica", and waits for all of
/// them, also if one fails.
///
/// If tasks throw, throws the error of the first of them by index: of its code,
/// with its context, and with a text that names replica and device, and the
/// other replicas that have failed. What the task threw is nested in it
/// (std::rethrow_if_nested). A task that throws something else than
/// `troupe::error` gives error(kernel_failure).
///
/// Thread rule: any thread but that of a handler of an actor in `system`, which
/// would keep a worker from the tasks.
/// @param on by task: the device that it works on, for errors
void run_replicas(caf::actor_system& system, std::span<const device_id> on,
                  std::span<const std::function<void()>> tasks);

/// Calls replica i with input i, all at the same time, and returns their
/// results in order. Throws as `run_replicas` does, and error(invalid_argument)
/// unless there are as many inputs and devices as replicas.
template <class Replica, class Input>
auto parallel_apply(caf::actor_system& system,
                    const std::vector<Replica>& replicas,
                    const std::vector<Input>& inputs,
                    std::span<const device_id> on) {
  using result =
    std::decay_t<std::invoke_result_t<const Replica&, const Input&>>;
  if (inputs.size() != replicas.size() || on.size() != replicas.size())
    throw error(errc::invalid_argument,
                std::to_string(inputs.size()) + " inputs and "
                  + std::to_string(on.size()) + " devices for "
                  + std::to_string(replicas.size()) + " replicas");
  std::vector<std::optional<result>> slots(replicas.size());
  std::vector<std::function<void()>> tasks;
  for (std::size_t i = 0; i < replicas.size(); ++i)
    tasks.emplace_back(
      [&, i] { slots[i].emplace(std::invoke(replicas[i], inputs[i])); });
  run_replicas(system, on, tasks);
  std::vector<result> results;
  for (auto& s : slots)
    results.push_back(std::move(*s));
  return results;
}

} // namespace troupe::parallel

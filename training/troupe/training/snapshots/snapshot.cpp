// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/snapshots/snapshot.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/fingerprint.hpp>
#include <troupe/graph/program_text.hpp>
#include <troupe/graph/ssa/persistable_updates.hpp>
#include <troupe/graph/ssa_graph.hpp>

#include <algorithm>
#include <string_view>

namespace troupe {

namespace {

/// With the strategy none, all that a device writes is its own.
bool trains_alone(const graph::ssa_graph& g) {
  return g.devices.size() > 1
         && std::ranges::none_of(g.ops, [](const graph::op_handle& o) {
              return o.kind == graph::op_kind::all_reduce
                     || o.kind == graph::op_kind::reduce
                     || o.kind == graph::op_kind::broadcast;
            });
}

class value_copier {
public:
  explicit value_copier(arena& memory) : memory_(memory) {}

  /// Does nothing if the variable has no tensor.
  void copy(const scope& from, std::string_view name, named_tensors& into) {
    const auto* held = from.find(name);
    if (!held || !held->is_tensor() || !held->as_tensor())
      return;
    const auto plain = from.to_host(held->as_tensor(), memory_);
    into.insert_or_assign(std::string{name}, clone(plain, memory_));
  }

private:
  arena& memory_;
};

void set_all(const named_tensors& values, scope& parameters) {
  arena memory{make_host_memory_source()}; // its blocks outlive it
  for (auto& [name, value] : values)
    parameters.var(name).set(clone(value, memory));
}

template <class Value>
void require_same(const std::string& name, const char* what, const Value& there,
                  const Value& here, const std::string& there_text,
                  const std::string& here_text) {
  if (there != here)
    throw error(errc::invalid_argument, name + " is of a run with " + what + " "
                                          + there_text + ", this run has "
                                          + here_text);
}

} // namespace

std::string hash_of(const graph::program& p) {
  fingerprint print;
  print.add(graph::to_text(p));
  return print.text();
}

void copy_values(const executor& exe, const scope& parameters, run_rank rank,
                 arena& memory, snapshot& into) {
  const auto& g = exe.graph();
  const auto own = g.devices.size() / rank.ranks;
  const auto first = rank.number * own;
  const auto replica_of = [&](std::size_t device) -> const scope& {
    return parameters.replica(device - first);
  };
  value_copier copier{memory};
  if (rank.number == 0)
    for (auto& name : parameters.names())
      copier.copy(parameters, name, into.values);
  const auto statistics = graph::device_statistics(g);
  const auto all_are_own = trains_alone(g);
  for (auto& [name, by] : graph::updating_devices(g)) {
    const auto home = *by.begin(); // has the value that all devices have
    if (home > 0 && home >= first && home < first + own)
      copier.copy(replica_of(home), name, into.values);
    if (!all_are_own && !statistics.contains(name))
      continue;
    for (auto device : by)
      if (device > 0 && device >= first && device < first + own)
        copier.copy(replica_of(device), name, into.of_device[device]);
  }
}

void restore_values(const snapshot& from, run_rank rank,
                    std::size_t own_devices, scope& parameters) {
  set_all(from.values, parameters);
  if (from.devices.per_rank * from.devices.ranks != own_devices * rank.ranks)
    return;
  const auto first = rank.number * own_devices;
  for (auto& [device, values] : from.of_device)
    if (device >= first && device < first + own_devices)
      set_all(values, parameters.replica(device - first));
}

void require_same_run(const run_identity& of_snapshot, const run_identity& here,
                      const std::string& name) {
  const auto& there = of_snapshot;
  require_same(name, "the program", there.program, here.program, there.program,
               here.program);
  require_same(name, "seed", there.seed, here.seed, std::to_string(there.seed),
               std::to_string(here.seed));
  require_same(name, "batches of", there.batch, here.batch,
               std::to_string(there.batch), std::to_string(here.batch));
  require_same(name, "steps per epoch:", there.steps_per_epoch,
               here.steps_per_epoch, std::to_string(there.steps_per_epoch),
               std::to_string(here.steps_per_epoch));
  require_same(name, "steps per update:", there.accumulate, here.accumulate,
               std::to_string(there.accumulate),
               std::to_string(here.accumulate));
}

} // namespace troupe

// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/steps/parameter_replicas.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/sub_blocks.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

namespace troupe::actors {

namespace {

/// A variable's name, and a device that has a copy of its value.
using copy = std::pair<std::string_view, std::size_t>;

/// Values that a step reads before it writes them.
std::set<copy> values_needed(const graph::ssa_graph& g) {
  std::set<copy> needed;
  for (auto& o : g.ops)
    for (auto id : o.inputs)
      if (auto& v = g.var(id); v.persistable && v.version == 0)
        needed.emplace(v.name, v.device);
  return needed;
}

/// Values that ops with a block may leave unchanged, if a branch is not taken
/// or a loop has no iteration.
std::set<copy> values_kept(const graph::ssa_graph& g) {
  std::set<copy> kept;
  for (auto& o : g.ops)
    if (graph::is_control_flow(o.desc->type))
      for (auto id : o.outputs)
        if (auto& v = g.var(id); v.persistable)
          kept.emplace(v.name, v.device);
  return kept;
}

/// "cpu:0,cpu:1".
std::string names_of(std::span<const std::shared_ptr<device>> devices) {
  std::string names;
  for (auto& on : devices)
    names += (names.empty() ? "" : ",") + to_string(on->id());
  return names;
}

/// Outdated copies in replicas 1 to `replicas`: copies of updated variables for
/// which the graph has no handle on a device with that replica.
std::vector<copy> copies_left_behind(const graph::ssa_graph& g,
                                     const placement& where,
                                     std::size_t replicas) {
  std::set<std::string_view> updated;
  std::set<copy> kept;
  for (auto& v : g.vars)
    if (v.persistable) {
      if (where.is_here(v.device))
        kept.emplace(v.name, where.replica_of(v.device));
      if (v.generator != no_handle)
        updated.insert(v.name);
    }
  std::vector<copy> left;
  for (auto name : updated)
    for (std::size_t d = 1; d <= replicas; ++d)
      if (!kept.contains({name, d}))
        left.emplace_back(name, d);
  return left;
}

/// Where there is a value, its place is kept: kernels may know it.
void put(variable& to, variable value) {
  if (!to.has_value())
    to = std::move(value);
  else if (value.is_rows())
    to.set(std::move(value.as_rows()));
  else
    to.set(std::move(value.as_tensor()));
}

} // namespace

parameter_replicas::parameter_replicas(
  const graph::ssa_graph& g, scope& parameters,
  std::span<const std::shared_ptr<device>> devices, placement where)
  : graph_(g), parameters_(parameters), devices_(devices),
    where_(std::move(where)) {}

void parameter_replicas::spread() {
  add_devices();
  for (auto& [name, d] : values_needed(graph_)) {
    if (!is_here(d))
      continue;
    auto* first = parameters_.find(name);
    if (!first || !first->has_value())
      throw error(errc::not_found,
                  "a persistable variable has no value: run the startup "
                  "program or load parameters first",
                  {.variable = std::string{name}});
    give(name, d);
  }
  for (auto& [name, d] : values_kept(graph_))
    if (is_here(d))
      give(name, d);
  forget_old_copies();
  for (auto& v : graph_.vars)
    if (v.persistable && v.version == 0 && is_here(v.device))
      replica_of(v.device).bring_to(v.name, *devices_[v.device]);
}

/// Copies a variable's value from the first device to a device without one, if
/// there is a value.
void parameter_replicas::give(std::string_view name, std::size_t to) {
  auto* first = parameters_.find(name);
  auto& here = replica_of(to).var(name);
  if (first && first->is_tensor() && !here.has_value())
    here.set(copied(first->as_tensor(), parameters_, to));
}

// A collective may give all devices the same value in the memory of one of
// them. Each replica therefore knows all devices with memory of their own.
void parameter_replicas::add_devices() {
  std::vector<std::shared_ptr<device>> apart;
  std::ranges::copy_if(devices_, std::back_inserter(apart),
                       [](const auto& d) { return !d->memory().is_host(); });
  for (std::size_t d = 0; d < devices_.size(); ++d)
    if (is_here(d))
      for (auto& on : apart)
        replica_of(d).add_device(on);
}

/// A plain copy on device `to` of a value of scope `of`.
tensor parameter_replicas::copied(const tensor& value, const scope& of,
                                  std::size_t to) {
  arena host{make_host_memory_source()}; // its blocks outlive it
  return devices_[to]->to_device(of.to_host(value, host));
}

// Discards copies of executors on this scope with other devices or another
// strategy. Later executors copy the values again. Earlier executors cannot
// continue.
void parameter_replicas::forget_old_copies() {
  bool discards = false;
  for (auto [name, replica] :
       copies_left_behind(graph_, where_, parameters_.replicas()))
    if (auto* old = parameters_.replica(replica).find(name);
        old && old->has_value()) {
      old->clear();
      discards = true;
    }
  if (discards)
    parameters_.note_discard(names_of(devices_));
}

void parameter_replicas::require_values() const {
  for (auto& [name, d] : values_needed(graph_)) {
    if (!is_here(d))
      continue;
    auto* held = replica_of(d).find(name);
    if (!held || !held->has_value())
      throw error(errc::invalid_argument,
                  "an executor on other devices (" + parameters_.discarded_by()
                    + "; this one: " + names_of(devices_)
                    + ") updates the same scope and has discarded the value "
                      "that is needed here: make a new executor, or give each "
                      "a scope of its own",
                  {.variable = std::string{name}});
  }
}

std::size_t parameter_replicas::first_here() const {
  std::size_t d = 0;
  while (!is_here(d))
    ++d;
  return d;
}

void parameter_replicas::update_scope() {
  std::unordered_set<std::string_view> written_on_first;
  const auto is_on_first = [this](const graph::var_handle& v) {
    return where_.replica_of(v.device) == 0;
  };
  for (auto& v : graph_.vars)
    if (v.persistable && is_here(v.device) && is_on_first(v) && v.version > 0)
      written_on_first.insert(v.name);
  for (auto& v : graph_.vars) {
    // Written on another device but never on the first.
    if (!v.persistable || v.generator == no_handle || !is_here(v.device)
        || is_on_first(v) || written_on_first.contains(v.name))
      continue;
    auto& replica = replica_of(v.device);
    if (auto& here = replica.var(v.name); here.is_tensor())
      parameters_.var(v.name).set(
        copied(here.as_tensor(), replica, first_here()));
  }
  bring_to_plain_layout();
}

void parameter_replicas::replace(const scope& from) {
  std::map<copy, variable> made; // by replica
  for (auto& v : graph_.vars)
    if (auto* given = from.find(v.name); given && is_here(v.device))
      if (auto& here = made[{v.name, where_.replica_of(v.device)}];
          !here.has_value())
        here = value_for(*given, from, v.device);
  const auto names = from.names();
  for (auto& name : names)
    if (auto& first = made[{name, 0}]; !first.has_value())
      first = *from.find(name);
  std::vector<std::pair<variable*, variable*>> places; // nothing throws below
  for (auto& [at, value] : made)
    places.emplace_back(&parameters_.replica(at.second).var(at.first), &value);
  std::vector<variable*> old;
  for (auto& name : names)
    for (std::size_t r = 1; r <= parameters_.replicas(); ++r)
      if (auto* held = parameters_.replica(r).find(name);
          held && held->has_value() && !made.contains({name, r}))
        old.push_back(held);
  if (!old.empty())
    parameters_.note_discard(names_of(devices_));
  for (auto* held : old)
    held->clear();
  for (auto [to, value] : places)
    put(*to, std::move(*value));
}

/// A value of scope `of`, in host memory, for device `to`.
variable parameter_replicas::value_for(const variable& value, const scope& of,
                                       std::size_t to) {
  if (!value.is_tensor())
    return value;
  variable made;
  made.set(copied(value.as_tensor(), of, to));
  return made;
}

/// Converts values that kernels, also those of another executor, have left in
/// the scope in their own layout.
void parameter_replicas::bring_to_plain_layout() {
  for (auto& v : graph_.vars) {
    if (!v.persistable || !is_here(v.device))
      continue;
    auto& replica = replica_of(v.device);
    auto* held = replica.find(v.name);
    if (held && held->is_tensor() && held->as_tensor()
        && !held->as_tensor().is_plain())
      held->set(copied(held->as_tensor(), replica, v.device));
  }
}

} // namespace troupe::actors

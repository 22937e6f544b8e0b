// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/steps/replica_check.hpp>

#include <troupe/actors/remote/calls_in_flight.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/fingerprint.hpp>
#include <troupe/comm/communicator.hpp>
#include <troupe/comm/word_sum.hpp>
#include <troupe/graph/ssa/persistable_updates.hpp>
#include <troupe/kernels/variable.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace troupe::actors {

namespace {

/// The devices that use a variable, by name.
using users = std::map<std::string, std::set<std::size_t>>;

users shared_variables(const graph::ssa_graph& g) {
  const auto statistics = graph::device_statistics(g);
  users found;
  for (auto& v : g.vars)
    if (v.persistable && !statistics.contains(v.name))
      found[std::string{v.name}].insert(v.device);
  std::erase_if(found, [](auto& entry) { return entry.second.size() < 2; });
  return found;
}

/// 0 if the variable has no tensor.
std::uint64_t hash_of(const scope& values, const std::string& name) {
  const auto* held = values.find(name);
  if (!held || !held->is_tensor() || !held->as_tensor())
    return 0;
  arena host{make_host_memory_source()};
  const auto plain = values.to_host(held->as_tensor(), host);
  fingerprint print;
  print.add(plain.raw(), plain.bytes());
  return print.value();
}

/// Hashes by device and variable.
class hash_table {
public:
  hash_table(std::size_t devices, std::size_t names)
    : names_(names), hashes_(devices * names) {}

  std::uint64_t& at(std::size_t device, std::size_t name) {
    return hashes_[device * names_ + name];
  }

  /// Adds the rows of devices in other processes.
  void complete(const placement& where, collective_ranks& ranks) {
    arena memory{make_host_memory_source()};
    const auto devices = where.process_of_device.size();
    std::vector<variable> given(devices);
    std::vector<comm::rank_value> values(devices);
    calls_in_flight calls;
    for (std::size_t d = 0; d < devices; ++d)
      if (where.is_here(d)) {
        given[d].set(only_row(d, memory));
        values[d] = {"hashes of parameters", &given[d], &given[d]};
        calls.start(ranks.of(d),
                    {comm::collective_kind::all_reduce, 0, {&values[d], 1}});
      }
    calls.wait();
    ranks.made_between_steps(1);
    const auto any = std::ranges::find_if(
      given, [](const variable& v) { return v.has_value(); });
    if (any != given.end())
      comm::read_sum(any->as_tensor(), hashes_);
  }

private:
  tensor only_row(std::size_t device, arena& memory) const {
    std::vector<std::uint64_t> words(hashes_.size());
    const auto row = std::span{hashes_}.subspan(device * names_, names_);
    std::ranges::copy(row, words.begin()
                             + static_cast<std::ptrdiff_t>(device * names_));
    return comm::to_summand(words, memory);
  }

  std::size_t names_;
  std::vector<std::uint64_t> hashes_;
};

/// The hash that most devices have; of several, that of the first device.
std::uint64_t most_common(const std::set<std::size_t>& devices,
                          std::size_t name, hash_table& hashes) {
  std::map<std::uint64_t, std::size_t> count;
  for (auto d : devices)
    ++count[hashes.at(d, name)];
  return hashes.at(
    *std::ranges::max_element(
      devices, {}, [&](std::size_t d) { return count[hashes.at(d, name)]; }),
    name);
}

} // namespace

void require_same_replicas(const graph::ssa_graph& g, const placement& where,
                           const scope& parameters, collective_ranks* ranks) {
  const auto shared = shared_variables(g);
  if (shared.empty())
    return;
  hash_table hashes{g.devices.size(), shared.size()};
  std::size_t i = 0;
  for (auto& [name, devices] : shared) {
    for (auto d : devices)
      if (where.is_here(d))
        hashes.at(d, i) =
          hash_of(parameters.replica(where.replica_of(d)), name);
    ++i;
  }
  if (ranks)
    hashes.complete(where, *ranks);
  i = 0;
  for (auto& [name, devices] : shared) {
    const auto common = most_common(devices, i, hashes);
    std::string odd;
    for (auto d : devices)
      if (hashes.at(d, i) != common)
        odd += (odd.empty() ? "" : ", ") + to_string(g.devices[d]);
    if (!odd.empty())
      throw error(errc::invalid_argument,
                  "its value on " + odd + " differs from that of other devices",
                  {.variable = name});
    ++i;
  }
}

} // namespace troupe::actors

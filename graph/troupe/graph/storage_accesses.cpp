// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/storage_accesses.hpp>

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace troupe::graph {

namespace {

// Readers of each variable, indexed like ssa_graph::vars. Ops come in
// ascending order, so that comparing with the last entry removes duplicates.
std::vector<std::vector<handle_id>> list_readers(const ssa_graph& g) {
  std::vector<std::vector<handle_id>> readers(g.vars.size());
  for (auto& op : g.ops)
    for (auto input : op.inputs) {
      auto& of_var = readers[input - g.ops.size()];
      if (of_var.empty() || of_var.back() != op.id)
        of_var.push_back(op.id);
    }
  return readers;
}

void sort_by_version(const ssa_graph& g, storage_accesses& storage) {
  auto version = [&g](const version_accesses& v) {
    return g.var(v.var).version;
  };
  std::sort(
    storage.versions.begin(), storage.versions.end(),
    [&](const auto& a, const auto& b) { return version(a) < version(b); });
}

} // namespace

bool version_accesses::read_by(handle_id op) const {
  return std::binary_search(readers.begin(), readers.end(), op);
}

const version_accesses* storage_accesses::first_written() const {
  for (auto& v : versions)
    if (v.writer != no_handle)
      return &v;
  return nullptr;
}

const version_accesses* storage_accesses::initial() const {
  return versions.front().writer == no_handle ? &versions.front() : nullptr;
}

std::vector<storage_accesses> list_accesses(const ssa_graph& g) {
  auto readers = list_readers(g);
  std::vector<storage_accesses> result;
  std::vector<std::unordered_map<std::string_view, std::size_t>> index(
    g.devices.size());
  for (std::size_t i = 0; i < g.vars.size(); ++i) {
    auto& v = g.vars[i];
    auto [at, added] = index[v.device].try_emplace(v.name, result.size());
    if (added)
      result.push_back({.persistable = v.persistable, .versions = {}});
    result[at->second].versions.push_back(
      {v.id, v.generator, std::move(readers[i])});
  }
  for (auto& storage : result)
    sort_by_version(g, storage);
  return result;
}

} // namespace troupe::graph

// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/backend/backend.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

namespace troupe {

namespace {

struct kind_entry {
  device_kind kind;
  std::string_view in_words; ///< for errors
  const backend& (*of)();    ///< null: not in this build
};

constexpr std::array<kind_entry, 3> kinds{{
  {device_kind::cpu, "CPU devices", &cpu_backend},
  {device_kind::cuda, "CUDA devices", &cuda_backend},
  {device_kind::sim, "simulated devices", &sim_backend},
}};

std::set<device_kind> kinds_of(std::span<const device_id> ids) {
  std::set<device_kind> found;
  for (auto id : ids)
    found.insert(id.kind);
  return found;
}

/// Keeps only passes that make no new op types, for a kind whose kernels are
/// unknown.
graph::lowering_options without_own_kernels(graph::lowering_options wanted) {
  auto plain = graph::lowering_options::none();
  plain.sync_batch_norm = wanted.sync_batch_norm;
  plain.fuse_all_reduce_bytes = wanted.fuse_all_reduce_bytes;
  plain.batch = wanted.batch;
  plain.write_in_place = wanted.write_in_place;
  return plain;
}

} // namespace

std::vector<std::unique_ptr<comm::communicator>>
backend::make_group(std::span<device* const> ranks,
                    const comm::local_group_options& merging) const {
  return comm::make_local_group(ranks, merging);
}

const backend* find_backend(device_kind kind) {
  const auto& entry = kinds[static_cast<std::size_t>(kind)];
  return entry.of ? &entry.of() : nullptr;
}

const backend& backend_of(device_kind kind) {
  if (const auto* found = find_backend(kind))
    return *found;
  const auto& entry = kinds[static_cast<std::size_t>(kind)];
  throw error(errc::not_found,
              "this build has no " + std::string(entry.in_words));
}

std::shared_ptr<const layout> find_layout(std::span<const device_id> ids,
                                          std::string_view name,
                                          const shape& dims) {
  for (auto kind : kinds_of(ids))
    if (const auto* of = find_backend(kind))
      if (auto found = of->find_layout(name, dims))
        return found;
  return nullptr;
}

std::vector<std::shared_ptr<device>>
make_devices(std::span<const device_id> ids, const device_options& options) {
  std::vector<std::shared_ptr<device>> devices;
  for (auto id : ids)
    try {
      devices.push_back(backend_of(id.kind).make_device(id.index, options));
    } catch (const error& e) {
      throw e.with_context({.device = to_string(id)});
    }
  return devices;
}

kernel_table kernels_for(std::span<const device_id> ids,
                         const kernel_options& options) {
  kernel_table all;
  for (auto kind : kinds_of(ids))
    if (const auto* of = find_backend(kind))
      all.add(of->kernels(options));
  return all;
}

void prepare_backends(std::span<const device_id> ids, std::size_t threads) {
  for (auto kind : kinds_of(ids))
    backend_of(kind).prepare(threads);
}

bool share_memory(std::span<const device_id> ids) {
  const auto kinds = kinds_of(ids);
  const auto* of = kinds.size() == 1 ? find_backend(*kinds.begin()) : nullptr;
  return of && of->shares_memory();
}

bool merges_by_rank(std::span<const device_id> ids) {
  const auto kinds = kinds_of(ids);
  const auto found = std::ranges::find_if_not(kinds, has_host_memory);
  if (found == kinds.end())
    return false;
  if (kinds.size() > 1)
    throw error(errc::invalid_argument,
                std::string(to_string(*found))
                  + " devices merge values only with others of their kind");
  return true;
}

std::vector<std::unique_ptr<comm::communicator>>
make_group(std::span<device* const> ranks,
           const comm::local_group_options& merging) {
  const auto other = [&](device* d) {
    return d->id().kind != ranks.front()->id().kind;
  };
  if (ranks.empty() || std::ranges::any_of(ranks, other))
    return comm::make_local_group(ranks, merging);
  return backend_of(ranks.front()->id().kind).make_group(ranks, merging);
}

graph::lowering_options lowering_for(std::span<const device_id> ids,
                                     graph::lowering_options wanted,
                                     const kernel_table& kernels) {
  for (auto kind : kinds_of(ids))
    if (const auto* of = find_backend(kind))
      wanted = of->lowering(wanted, kernels);
    else
      wanted = without_own_kernels(wanted);
  if (!share_memory(ids))
    wanted.share_parameters = wanted.gather_products = wanted.merge_in_updates =
      false;
  return wanted;
}

std::shared_ptr<const graph::program>
lowered_for(std::span<const device_id> ids,
            std::shared_ptr<const graph::program> p,
            const graph::lowering_options& possible) {
  for (auto kind : kinds_of(ids))
    if (const auto* of = find_backend(kind))
      p = of->lowered(std::move(p), possible);
  return p;
}

} // namespace troupe

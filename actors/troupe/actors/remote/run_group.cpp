// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/run_group.hpp>

#include <troupe/actors/remote/node_link.hpp>
#include <troupe/actors/remote/run_pass.hpp>
#include <troupe/actors/tasks/collective_ranks.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/fingerprint.hpp>
#include <troupe/comm/engine/join.hpp>
#include <troupe/comm/engine/key_store.hpp>
#include <troupe/comm/host_identity.hpp>
#include <troupe/comm/shm/join.hpp>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe::actors {

namespace {

using ends_of_group = std::vector<std::unique_ptr<comm::communicator>>;

/// This process's place among those with devices: the others have no rank.
struct group_place {
  std::size_t process = 0, processes = 0;
  std::vector<std::size_t> ranks;
  std::string path; ///< where processes of this host meet
  std::chrono::milliseconds timeout;
  std::function<void()> check;
};

group_place place_of(const node_options& options, const node_link& link) {
  const auto& homes = options.process_of_device;
  const std::set<std::size_t> with_devices(homes.begin(), homes.end());
  group_place place;
  place.process = static_cast<std::size_t>(
    std::distance(with_devices.begin(), with_devices.find(options.process)));
  place.processes = with_devices.size();
  for (std::size_t d = 0; d < homes.size(); ++d)
    if (homes[d] == options.process)
      place.ranks.push_back(d);
  place.path = group_path(options.pass_folder, link.port());
  place.timeout = std::chrono::milliseconds{options.timeout_ms};
  place.check = [&] {
    link.require_all();
    if (options.check)
      options.check();
  };
  return place;
}

/// Fills in what all kinds of groups have in common.
template <class Options>
Options options_of(const group_place& place) {
  Options group;
  group.ranks = place.ranks;
  group.timeout = place.timeout;
  group.check = place.check;
  return group;
}

ends_of_group join_in_memory(const group_place& place,
                             std::shared_ptr<comm::process_memory> own) {
  auto group = options_of<comm::shm_group_options>(place);
  group.path = place.path;
  group.process = place.process;
  group.processes = place.processes;
  std::error_code ignored;
  if (group.process == 0) // left by a run that was killed
    std::filesystem::remove(group.path, ignored);
  return comm::join_shm_group(group, std::move(own));
}

/// The processes of a run tell each other by control messages how they can be
/// reached. Keys of a run differ from each other; nothing needs to be removed.
/// A group uses its store only while it is joined, so the link outlives that
/// use.
class link_store final : public comm::key_store {
public:
  explicit link_store(node_link& link) : link_(link) {}

  void publish(const std::string& key, std::span<const char> value) override {
    link_.publish(key, {value.begin(), value.end()});
  }
  std::optional<std::vector<char>> find(const std::string& key) override {
    const auto found = link_.find_published(key);
    return found
             ? std::optional{std::vector<char>{found->begin(), found->end()}}
             : std::nullopt;
  }
  void clear() noexcept override {}

private:
  node_link& link_;
};

/// Processes of several hosts. Each finds those of its own host by what the
/// kernel says, whatever the launcher and the order of numbers.
template <class Options>
Options options_between(const group_place& place, const node_options& options,
                        std::shared_ptr<comm::process_memory> own) {
  auto group = options_of<Options>(place);
  // Process 0 of another run can have the same port on another host, and hosts
  // that are containers can have this folder in common.
  const auto host = comm::host_identity();
  fingerprint where;
  where.add(options.host);
  where.add(&host, sizeof host);
  group.hosts =
    comm::host_group_options{host, place.path + "." + where.text(),
                             std::move(own), !options.deterministic};
  return group;
}

ends_of_group join_by_gloo(const node_options& options, node_link& link,
                           const group_place& place,
                           std::shared_ptr<comm::process_memory> own) {
  auto group =
    options_between<comm::gloo_group_options>(place, options, std::move(own));
  group.store = std::make_shared<link_store>(link);
  group.process = place.process;
  group.processes = place.processes;
  group.address = link.own_address();
  return comm::join_gloo_group(group);
}

ends_of_group join_by_mpi(const node_options& options, const group_place& place,
                          std::shared_ptr<comm::process_memory> own) {
  const auto mpi = comm::mpi_support();
  const auto processes = options.processes();
  if (place.processes != processes)
    throw error(errc::invalid_argument,
                "with MPI, each process of a run needs a device");
  if (mpi.is_usable
      && (mpi.process != options.process || mpi.processes != processes))
    throw error(errc::invalid_argument,
                "MPI has started process " + std::to_string(mpi.process)
                  + " of " + std::to_string(mpi.processes)
                  + ", which is process " + std::to_string(options.process)
                  + " of " + std::to_string(processes) + " in the run");
  return comm::join_mpi_group(options_between<comm::engine_group_options>(
    place, options, std::move(own)));
}

} // namespace

group_engine engine_of(const node_options& options) {
  if (options.engine != group_engine::automatic)
    return options.engine;
  return options.network ? group_engine::gloo : group_engine::shared_memory;
}

void join_run_group(const node_options& options, node_link& link,
                    std::shared_ptr<comm::process_memory> own,
                    collective_ranks& into) {
  const auto place = place_of(options, link);
  if (place.ranks.empty())
    return;
  switch (engine_of(options)) {
  case group_engine::gloo:
    return into.join(join_by_gloo(options, link, place, std::move(own)));
  case group_engine::mpi:
    return into.join(join_by_mpi(options, place, std::move(own)));
  default: return into.join(join_in_memory(place, std::move(own)));
  }
}

} // namespace troupe::actors

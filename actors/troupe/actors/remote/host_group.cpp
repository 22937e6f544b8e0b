// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/host_group.hpp>

#include <troupe/actors/remote/gate.hpp>
#include <troupe/actors/remote/node_link.hpp>
#include <troupe/actors/tasks/collective_ranks.hpp>
#include <troupe/comm/shm/join.hpp>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

namespace troupe::actors {

void join_host_group(const node_options& options, const node_link& link,
                     std::shared_ptr<comm::process_memory> own,
                     collective_ranks& into) {
  // Processes without devices have no rank.
  const std::set<std::size_t> with_devices(options.process_of_device.begin(),
                                           options.process_of_device.end());
  const auto self = with_devices.find(options.process);
  if (self == with_devices.end())
    return;
  comm::shm_group_options group;
  group.path = group_path(options.pass_folder, link.port());
  group.process =
    static_cast<std::size_t>(std::distance(with_devices.begin(), self));
  group.processes = with_devices.size();
  group.timeout = std::chrono::milliseconds{options.timeout_ms};
  for (std::size_t d = 0; d < options.process_of_device.size(); ++d)
    if (options.process_of_device[d] == options.process)
      group.ranks.push_back(d);
  group.check = [&] {
    link.require_all();
    if (options.check)
      options.check();
  };
  std::error_code ignored;
  if (group.process == 0) // left by a run that was killed
    std::filesystem::remove(group.path, ignored);
  into.join(comm::join_shm_group(group, std::move(own)));
}

} // namespace troupe::actors

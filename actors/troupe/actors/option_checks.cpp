// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/option_checks.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/remote/node_link.hpp>
#include <troupe/base/error.hpp>

#include <algorithm>
#include <string>

namespace troupe::actors {

void check_options(const executor_options& options) {
  if (options.steps_in_flight == 0)
    throw error(errc::invalid_argument, "steps_in_flight is 0");
  // Each step in flight needs a place for every temporary.
  constexpr std::uint32_t most_in_flight = 1u << 16;
  if (options.steps_in_flight > most_in_flight)
    throw error(errc::invalid_argument,
                "steps_in_flight is " + std::to_string(options.steps_in_flight)
                  + ", at most " + std::to_string(most_in_flight)
                  + " are possible");
  if (options.devices.empty())
    throw error(errc::invalid_argument, "no devices");
  if (options.nodes)
    check_nodes(*options.nodes, options.devices.size());
  if (options.nodes && !share_memory(options.devices))
    throw error(errc::invalid_argument,
                "a run over several processes needs devices in the host's "
                "memory (cpu), not "
                  + to_string(options.devices.front()));
  const auto apart = std::ranges::find_if_not(
    options.devices, [](auto id) { return has_host_memory(id.kind); });
  if (options.hooks.check_nan && apart != options.devices.end())
    throw error(errc::invalid_argument,
                "check_nan reads values on the host, which cannot read those "
                "of "
                  + to_string(*apart));
  if (options.nodes && !options.hooks.places.empty())
    throw error(errc::invalid_argument,
                "places are given, and processes, which are places");
}

std::shared_ptr<const kernel_table>
with_outside_ops(const executor_options& options) {
  if (options.outside_ops.empty())
    return options.kernels;
  auto all = std::make_shared<kernel_table>(*options.kernels);
  for (auto& [type, computes] : options.outside_ops) {
    if (!computes)
      throw error(errc::invalid_argument,
                  "nothing computes the outside op " + type);
    for (auto& device : options.devices)
      all->add(type, device.kind, [](kernel_context&) {
        throw error(
          errc::unsupported_op,
          "an op that is computed outside of the graph cannot be in a "
          "block");
      });
  }
  return all;
}

std::vector<std::shared_ptr<device>>
devices_of(const executor_options& options) {
  const auto& given = options.hooks.device_instances;
  if (!given.empty()) {
    if (given.size() != options.devices.size())
      throw error(errc::invalid_argument,
                  "as many device instances as devices are needed");
    return given;
  }
  return make_devices(options.devices,
                      {options.waits_by, options.sums_in_order});
}

} // namespace troupe::actors

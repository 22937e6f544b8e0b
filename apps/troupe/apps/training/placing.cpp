// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/training/placing.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/files/input_file.hpp>
#include <troupe/base/quoted_name.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace troupe::apps {

std::vector<graph::handle_place> read_places(const std::string& file) {
  constexpr std::uint64_t most_bytes = 1 << 20;
  std::vector<graph::handle_place> places;
  try {
    places =
      graph::parse_handle_places(read_whole_file(file, most_bytes), file);
  } catch (const error& failure) {
    throw error(failure.code(), "--place: " + failure.message());
  }
  if (places.empty())
    throw error(errc::bad_file,
                "--place: " + one_line(file) + " has no line 'PATTERN RANK'");
  return places;
}

std::vector<std::size_t> spread_devices(executor_options& options,
                                        std::size_t ranks) {
  const auto own = std::exchange(options.devices, {});
  const auto numbers = 1 + std::ranges::max(own, {}, &device_id::index).index;
  std::vector<std::size_t> process_of_device;
  for (std::size_t r = 0; r < ranks; ++r)
    for (auto device : own) {
      device.index += static_cast<int>(r) * numbers;
      options.devices.push_back(device);
      process_of_device.push_back(r);
    }
  for (auto& place : options.places) {
    if (place.rank >= ranks)
      throw error(errc::bad_file,
                  "--place: " + place.source + ": there is no rank "
                    + std::to_string(place.rank) + ", the last one is "
                    + std::to_string(ranks - 1));
    place.rank *= static_cast<std::uint32_t>(own.size());
  }
  return process_of_device;
}

} // namespace troupe::apps

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace troupe::actors {

/// Which process runs the handles of which device. With one process, all are
/// here.
struct placement {
  std::vector<std::size_t> process_of_device; ///< empty: all in process 0
  std::size_t this_process = 0;

  bool is_here(std::size_t device) const {
    return process_of_device.empty()
           || process_of_device[device] == this_process;
  }
  /// By device: true if it is in this process; empty: all are.
  std::vector<bool> here() const {
    std::vector<bool> result;
    for (std::size_t d = 0; d < process_of_device.size(); ++d)
      result.push_back(is_here(d));
    return result;
  }
  /// The replica of the scope that a device of this process uses
  /// (`scope::replica`): its position among the devices of this process.
  std::size_t replica_of(std::size_t device) const {
    if (process_of_device.empty())
      return device;
    const auto first = process_of_device.begin();
    return static_cast<std::size_t>(std::count(
      first, first + static_cast<std::ptrdiff_t>(device), this_process));
  }
};

} // namespace troupe::actors

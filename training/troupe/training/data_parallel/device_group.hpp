// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/device.hpp>
#include <troupe/kernels/variable.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace troupe {

/// Devices of this process that pass values to each other. Values in it are
/// dense tensors or selected rows.
///
/// Thread rule: one thread at a time; functions that are const from any thread.
class device_group {
public:
  /// Makes the devices. Throws error(not_found) naming a device that the
  /// machine does not have, and error(invalid_argument) if there is none or one
  /// is listed twice.
  explicit device_group(const std::vector<device_id>& ids);
  /// Takes devices that may have other uses. Throws error(invalid_argument) as
  /// above.
  explicit device_group(std::vector<std::shared_ptr<device>> members);
  ~device_group();
  device_group(const device_group&) = delete;
  device_group& operator=(const device_group&) = delete;

  std::size_t size() const noexcept { return ids_.size(); }
  /// Ids of the devices, in order.
  const std::vector<device_id>& ids() const noexcept { return ids_; }
  /// A device; `i` is less than `size()`.
  const std::shared_ptr<device>& at(std::size_t i) const {
    return devices_.at(i);
  }
  /// Number of a device in the group. Throws error(not_found) if it is not
  /// there.
  std::size_t index_of(device_id id) const;

  /// Gives the first `copies.size()` devices the values that lie on device 0,
  /// by one collective call for all of them. Copies that share memory with
  /// others are marked (`tensor::share`), so no kernel writes them in place.
  /// Throws as `comm::communicator` does.
  /// @param copies by device: one variable per value
  void broadcast(std::span<variable* const> values,
                 std::span<const std::vector<variable*>> copies);
  /// Adds up a list of values per device, element by element in the order of
  /// devices, by one collective call. Throws as `comm::communicator` does: if
  /// shapes differ, error(shape_mismatch).
  /// @param values by device, as many as devices or fewer; what they hold is
  ///   undefined afterwards
  /// @param to the device that gets the sums; one of those with values
  std::vector<variable> reduce_add(std::span<std::vector<variable>> values,
                                   std::size_t to);
  /// Adds a value to one that lies on device 0 too, or is missing. Throws as
  /// `reduce_add` does; `sum` is then undefined.
  void add_to(variable& sum, variable term);

private:
  struct group;

  std::vector<device_id> ids_;
  std::vector<std::shared_ptr<device>> devices_;
  std::unique_ptr<group> group_;
};

} // namespace troupe

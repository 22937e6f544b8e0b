// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/variable.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

class device;

/// Owns the variables that outlive a step (parameters, optimizer state,
/// statistics), by name. Training, test and server executors can share one
/// scope. An executor's first device uses the scope itself. Device i > 0 uses
/// replica i, except for variables that devices share.
///
/// Values may lie in a device's memory. The host reads them through `to_host`.
///
/// References stay valid as long as the scope. Thread rule: call `var`,
/// `replica`, `drop_replicas` and what concerns devices only while no executor
/// runs on the scope.
class scope {
public:
  scope();
  ~scope();
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;

  /// The variable of that name. An empty one is created if there is none.
  variable& var(std::string_view name);
  ///@{
  /// Null if there is none.
  variable* find(std::string_view name) noexcept;
  const variable* find(std::string_view name) const noexcept;
  ///@}
  /// All names, sorted.
  std::vector<std::string> names() const;

  /// The scope of device `index`: this scope for 0, otherwise a replica. A
  /// replica is created empty at first use; the executor fills it from device
  /// 0.
  scope& replica(std::size_t index);
  /// An existing one. Throws error(out_of_range) if it was never made.
  const scope& replica(std::size_t index) const;
  /// Number of replicas. Replica i belongs to device i, from 1 on.
  std::size_t replicas() const noexcept { return replicas_.size(); }
  /// Deletes the replicas. Call it after changing values that executors have
  /// already copied to replicas, for example after loading parameters.
  /// Executors made before the call must not run again.
  void drop_replicas() noexcept;

  ///@{
  /// An executor that cannot keep the values of earlier executors up to date,
  /// because it has other devices, discards them in replicas. It says so here,
  /// with its devices. `discards` counts such calls, on this scope only.
  void note_discard(std::string devices);
  std::uint64_t discards() const noexcept { return discards_; }
  /// The devices of the latest executor that has discarded values.
  const std::string& discarded_by() const noexcept { return discarded_by_; }
  ///@}

  /// An executor calls this before its device `on` stores values here. If the
  /// host cannot read the device's memory, the scope keeps the device alive
  /// until another is added and no value lies in that memory any more.
  void add_device(std::shared_ptr<device> on);
  /// Returns a value of this scope for the host: plain and in host memory. A
  /// plain value in host memory is returned itself; any other is copied to
  /// memory from `host`, and this blocks until the copy is complete. Throws
  /// error(invalid_argument) if the value lies in the memory of an unknown
  /// device.
  tensor to_host(const tensor& value, arena& host) const;
  /// Moves a variable's tensor to memory that `on` reaches, if it lies
  /// elsewhere. Throws as `to_host` does.
  void bring_to(std::string_view name, device& on);

private:
  std::map<std::string, std::unique_ptr<variable>, std::less<>> variables_;
  std::vector<std::unique_ptr<scope>> replicas_;
  /// Devices whose memory the host cannot read.
  std::vector<std::shared_ptr<device>> devices_;
  std::uint64_t discards_ = 0;
  std::string discarded_by_;
};

} // namespace troupe

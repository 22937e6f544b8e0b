// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/training/snapshots/snapshot_folder.hpp>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace troupe {

/// Writes snapshots on a thread of its own, while training goes on.
///
/// Thread rule: one thread.
class snapshot_writer {
public:
  /// @param keep number of snapshots to keep
  snapshot_writer(snapshot_folder folder, std::size_t keep);
  ~snapshot_writer(); ///< waits for the last write
  snapshot_writer(const snapshot_writer&) = delete;
  snapshot_writer& operator=(const snapshot_writer&) = delete;

  /// Told on the writer's thread, when a snapshot is on the disk or could not
  /// be written. Must not throw, and not call the writer.
  using listener = std::function<void(const std::optional<std::string>& why)>;

  /// Takes a snapshot to write. First waits until the one before is written.
  /// @param written can be empty
  void write(snapshot taken, listener written = {});
  /// Waits until all is written. Returns why writes failed, if some did: the
  /// first reason. It is returned once.
  std::optional<std::string> take_failure();

private:
  void serve();
  void wait_until_idle(std::unique_lock<std::mutex>& guard);

  snapshot_folder folder_;
  std::size_t keep_;
  std::mutex mutex_; // guards the next five
  std::condition_variable changed_;
  std::optional<snapshot> next_; // until it is written
  listener written_;             // of `next_`
  std::optional<std::string> failure_;
  bool ends_ = false;
  std::thread thread_;
};

} // namespace troupe

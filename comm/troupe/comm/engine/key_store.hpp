// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::comm {

/// Where the processes of one group publish how they can be reached. Each of
/// them publishes a few small values and looks for those of all others. Keys
/// consist of letters, digits, '-' and '_'.
///
/// Thread rule: a group calls the functions one at a time, on any thread, and
/// none after it was joined or joining it has failed. If several processes of a
/// group share an object, because they are in one, it must allow calls at the
/// same time.
class key_store {
public:
  virtual ~key_store() = default;

  /// Makes a value known to all processes. Others see all of it or nothing.
  /// Throws error(io_failure) if there is such a key already or the value
  /// cannot be published.
  virtual void publish(const std::string& key, std::span<const char> value) = 0;

  /// The value of the key, or nothing if it has not been published yet. Never
  /// waits: who waits asks again every few milliseconds. Throws if the value
  /// will not come, error(io_failure) if it cannot be read; this ends the wait.
  virtual std::optional<std::vector<char>> find(const std::string& key) = 0;

  /// Removes what this process has published. Called when all processes have
  /// found what they need, or joining the group has failed.
  virtual void clear() noexcept = 0;
};

/// Waits for the value of a key that ends with "_" or "-" and the number of the
/// process that publishes it. Throws error(peer_failure) that names the process
/// after the deadline, and what the store and the check throw.
/// @param check called now and then, if set
std::vector<char> wait_for_key(key_store& store, const std::string& key,
                               std::chrono::steady_clock::time_point deadline,
                               const std::function<void()>& check);

/// A store of one process that keeps its values in files, one per key. It
/// removes its own files when it is destroyed, at the latest.
///
/// @param folder that only its owner can enter, on a file system that all
///   processes see. No file of an earlier group may be left. `publish` throws
///   if it does not exist.
std::shared_ptr<key_store> make_folder_store(std::string folder);

} // namespace troupe::comm

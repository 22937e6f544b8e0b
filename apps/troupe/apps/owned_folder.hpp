// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/files/descriptor.hpp>

#include <string>

namespace troupe::apps {

/// A folder that processes of a job use. Each process that owns it holds a lock
/// on the file "owner" in it. The system releases the lock when the process
/// ends, however it ends. So anybody can tell a folder that nobody needs any
/// more from one of a job that lives.
///
/// Thread rule: one thread.
class owned_folder {
public:
  /// Makes the folder, which only this user can enter, or becomes one of its
  /// owners. If nobody owned it, what was in it is removed.
  ///
  /// Throws error(io_failure), and error(invalid_argument) if a folder that is
  /// there is another user's or others may enter it.
  explicit owned_folder(std::string path);
  /// Removes the folder if this was the last owner.
  ~owned_folder();
  owned_folder(const owned_folder&) = delete;
  owned_folder& operator=(const owned_folder&) = delete;

  const std::string& path() const noexcept { return path_; }

private:
  bool enter();

  std::string path_;
  descriptor owner_; ///< the file, with the lock
};

/// Keeps a folder from being taken for one that nobody needs, until the result
/// is closed. Does not make the folder, and removes nothing.
descriptor hold_folder(const std::string& path);

/// Removes folders in `in` that had owners and have none any more: their
/// processes were killed. Removes folders for the ranks of a host
/// (`job-*.host-*`), too, that never had an owner, are older than ten minutes,
/// and that no process of this user names in TROUPE_RENDEZVOUS. Does nothing
/// with others. What cannot be removed stays.
void remove_ownerless(const std::string& in);

} // namespace troupe::apps

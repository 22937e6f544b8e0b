// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/files/descriptor.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::apps {

/// The processes of an elastic job on this host that some launcher has started.
/// Each takes a number and holds a lock on a file of this number. The system
/// releases the lock when the process ends, so all see who lives.
///
/// Thread rule: one thread at a time.
class job_processes {
public:
  /// Takes `wanted` as this process's number, unless it is or was another
  /// one's: then the first number from `next` on that is free.
  /// @param folder all processes of the job use it, and no others
  /// Throws error(io_failure).
  job_processes(std::string folder, std::uint64_t wanted, std::uint64_t next);

  std::uint64_t own() const noexcept { return own_; }
  /// The numbers of the processes that live, in increasing order; a stopped one
  /// lives.
  std::vector<std::uint64_t> living() const;
  bool lives(std::uint64_t number) const;
  /// Those that live and those that have ended, in increasing order.
  std::vector<std::uint64_t> all() const;
  /// True if it is one of these.
  bool knows(std::uint64_t number) const;
  /// Kills a process of the job, which may be this one. Does nothing if it has
  /// ended.
  void kill(std::uint64_t number) const;

private:
  std::string folder_;
  std::uint64_t own_ = 0;
  descriptor lock_;
};

} // namespace troupe::apps

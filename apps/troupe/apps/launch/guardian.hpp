// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/files/descriptor.hpp>

#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::apps {

/// A process that cleans up if this process ends before the object: it kills
/// the process groups and removes the folder. A process that is killed by
/// SIGKILL cannot do so itself.
///
/// Without it, only the first process of each group would end with this one,
/// not what it has started.
class guardian {
public:
  /// Throws error(io_failure) if the process cannot be started.
  guardian(const std::vector<pid_t>& groups, const std::string& folder);
  /// Nothing is left to clean up.
  ~guardian();
  guardian(const guardian&) = delete;
  guardian& operator=(const guardian&) = delete;

private:
  descriptor tell_;
  pid_t id_ = -1;
};

} // namespace troupe::apps

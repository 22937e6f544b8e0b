// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <sys/types.h>

namespace troupe::comm {

/// A text that names the closest ancestor of a process of this host in whose
/// environment the variable is not set, or whose environment may not be read:
/// "1234.567890", its number and the time of its start. No other process gets
/// the same text before the next boot. What counts is the environment with
/// which a process was started. Empty if there is none. Any thread.
std::string process_that_set(const std::string& variable, pid_t process);

} // namespace troupe::comm

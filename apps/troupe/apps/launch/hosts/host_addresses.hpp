// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/launch/job.hpp>

namespace troupe::apps {

/// Asks all hosts at once for the address of `remote.interface`, with the
/// remote shell, and notes it in each. Throws error(io_failure), which names
/// the first host that has none or cannot be reached.
void find_host_addresses(remote_start& remote);

} // namespace troupe::apps

// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/comm/engine/join.hpp>

namespace troupe::comm {

std::vector<std::unique_ptr<communicator>>
join_mpi_group(const engine_group_options&) {
  throw error(errc::not_found, "this build has no MPI: libopenmpi-dev was not "
                               "installed when it was configured");
}

engine_support mpi_support() {
  return {};
}

} // namespace troupe::comm

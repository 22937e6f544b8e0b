// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/comm/engine/join.hpp>

namespace troupe::comm {

std::vector<std::unique_ptr<communicator>>
join_gloo_group(const gloo_group_options&) {
  throw error(errc::not_found, "this build has no Gloo: libgloo-dev was not "
                               "installed when it was configured");
}

engine_support gloo_support() {
  return {};
}

} // namespace troupe::comm

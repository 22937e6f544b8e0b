// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/communicator.hpp>

namespace troupe::comm {

std::string_view to_string(collective_kind kind) noexcept {
  switch (kind) {
  case collective_kind::all_reduce: return "all_reduce";
  case collective_kind::reduce: return "reduce";
  case collective_kind::broadcast: return "broadcast";
  }
  return "unknown";
}

} // namespace troupe::comm

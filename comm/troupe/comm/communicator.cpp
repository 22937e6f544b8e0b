// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/communicator.hpp>

#include <utility>

namespace troupe::comm {

std::string_view to_string(collective_kind kind) noexcept {
  switch (kind) {
  case collective_kind::all_reduce: return "all_reduce";
  case collective_kind::reduce: return "reduce";
  case collective_kind::broadcast: return "broadcast";
  }
  return "unknown";
}

namespace {

[[noreturn]] void refuse_parcels() {
  throw error(errc::invalid_argument,
              "a group within one process has no parcels");
}

} // namespace

std::optional<waiting_call> communicator::waits_for() const {
  auto first = waiting_calls(1);
  return first.empty() ? std::nullopt : std::optional{std::move(first.front())};
}

void communicator::open_parcels(parcel_receiver&) {
  refuse_parcels();
}

void communicator::send_parcel(std::size_t, parcel) {
  refuse_parcels();
}

} // namespace troupe::comm

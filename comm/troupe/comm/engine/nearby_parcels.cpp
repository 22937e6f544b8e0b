// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/engine/nearby_parcels.hpp>

namespace troupe::comm {

nearby_parcels::nearby_parcels(neighbours& with, arena& memory, parcel_gate& to)
  : with_(with), traffic_(with.lines(), with.rings(), with.members(),
                          with.self(), memory, to) {
  for (std::size_t n = 0; n < with.count(); ++n)
    if (n != with.self())
      reached_ |= with.members()[n].ranks;
  thread_.emplace("troupe-near", own_line(), [this] { traffic_.advance(); });
}

void nearby_parcels::begin_looking() noexcept {
  own_line().looking.fetch_add(1, std::memory_order_seq_cst);
}

void nearby_parcels::end_looking() {
  own_line().looking.fetch_sub(1, std::memory_order_seq_cst);
  traffic_.advance(); // for changes that did not ring
}

} // namespace troupe::comm

// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/collective.hpp>

#include <troupe/comm/local/local_collective.hpp>

namespace troupe::comm {

std::string_view to_string(collective_kind kind) noexcept {
  switch (kind) {
  case collective_kind::all_reduce: return "all_reduce";
  case collective_kind::reduce: return "reduce";
  case collective_kind::broadcast: return "broadcast";
  case collective_kind::all_gather: return "all_gather";
  case collective_kind::reduce_scatter: return "reduce_scatter";
  }
  return "unknown";
}

std::unique_ptr<collective>
make_local_collective(std::size_t ranks, const collective_options& options) {
  return std::make_unique<local::local_collective>(ranks, options);
}

void run(collective& c, std::span<const tensor> inputs,
         std::span<tensor> outputs) {
  c.bind(inputs, outputs);
  for (std::size_t part = 0; part < c.parts(); ++part)
    c.run_part(part);
  c.finish();
}

} // namespace troupe::comm

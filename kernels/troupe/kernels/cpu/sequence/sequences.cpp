// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/sequence/sequences.hpp>

#include <troupe/base/error.hpp>

#include <string>

namespace troupe::cpu {

const lod& require_levels(const tensor& value, std::string_view slot) {
  if (!value.levels())
    throw error(errc::invalid_argument,
                std::string(slot) + " " + to_string(value.dims())
                  + " has no sequences (level of detail)");
  return *value.levels();
}

std::int64_t row_elements(const shape& dims) {
  return dims.rank() == 0 ? 1 : dims.numel(1, dims.rank());
}

} // namespace troupe::cpu

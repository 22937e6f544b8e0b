// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/layout/layout_traffic.hpp>

namespace troupe::cpu {

namespace {

thread_local std::uint64_t traffic = 0;

} // namespace

std::uint64_t layout_traffic() noexcept {
  return traffic;
}

void add_layout_traffic(std::uint64_t bytes) noexcept {
  traffic += bytes;
}

} // namespace troupe::cpu

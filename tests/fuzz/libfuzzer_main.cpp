// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz_target.hpp"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  troupe::fuzz::run_guarded({reinterpret_cast<const char*>(data), size});
  return 0;
}

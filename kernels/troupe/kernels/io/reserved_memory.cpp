// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/io/reserved_memory.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/memory/memory_limit.hpp>

#include <string>

namespace troupe {

reserved_memory::~reserved_memory() {
  return_host_memory(held_);
}

void reserved_memory::hold(std::size_t bytes) {
  if (bytes > held_ && !reserve_host_memory(bytes - held_))
    throw error(
      errc::out_of_memory,
      file_.string() + ": no memory for " + std::to_string(bytes)
        + " bytes to read it: " + std::to_string(host_memory_reserved())
        + " are held, the limit is " + std::to_string(host_memory_limit()));
  if (bytes < held_)
    return_host_memory(held_ - bytes);
  held_ = bytes;
}

} // namespace troupe

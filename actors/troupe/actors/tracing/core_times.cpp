// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tracing/core_times.hpp>

#include <filesystem>
#include <fstream>
#include <system_error>

namespace troupe::actors {

core_times core_times::now() {
  core_times all;
  std::error_code failure;
  for (std::filesystem::directory_iterator thread{"/proc/self/task", failure},
       end;
       !failure && thread != end; thread.increment(failure)) {
    std::ifstream file{thread->path() / "schedstat"};
    std::uint64_t ran = 0, waited = 0;
    if (file >> ran >> waited) { // false if the thread has ended meanwhile
      all.ran_ns += ran;
      all.waited_ns += waited;
    }
  }
  return all;
}

} // namespace troupe::actors

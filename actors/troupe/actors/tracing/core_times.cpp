// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tracing/core_times.hpp>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace troupe::actors {

namespace {

/// The time that "steal" of the first line of /proc/stat counts.
std::uint64_t read_stolen_ns() {
  std::ifstream file{"/proc/stat"};
  std::string name;
  std::uint64_t user = 0, nice = 0, system = 0, idle = 0, io = 0, irq = 0,
                soft_irq = 0, stolen = 0;
  const auto per_second = sysconf(_SC_CLK_TCK);
  if (!(file >> name >> user >> nice >> system >> idle >> io >> irq >> soft_irq
        >> stolen)
      || per_second <= 0)
    return 0;
  return stolen * (1'000'000'000 / static_cast<std::uint64_t>(per_second));
}

std::uint64_t difference(std::uint64_t later, std::uint64_t before) noexcept {
  return later - std::min(later, before);
}

} // namespace

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
  all.stolen_ns = read_stolen_ns();
  return all;
}

core_times core_times::since(const core_times& before) const noexcept {
  return {difference(ran_ns, before.ran_ns),
          difference(waited_ns, before.waited_ns),
          difference(stolen_ns, before.stolen_ns)};
}

} // namespace troupe::actors

// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/memory/memory_limit.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <sstream>

namespace troupe {

namespace {

// Relaxed: they order no other memory.
std::atomic<std::size_t> reserved{0};
std::atomic<std::size_t> wanted_limit{0}; // 0: the default

std::size_t physical_memory() noexcept {
  const auto pages = std::max(1L, ::sysconf(_SC_PHYS_PAGES));
  const auto page = std::max(1L, ::sysconf(_SC_PAGESIZE));
  return static_cast<std::size_t>(pages) * static_cast<std::size_t>(page);
}

/// The number in a file; SIZE_MAX if the file is missing or holds "max".
std::size_t limit_in(const std::string& path) {
  std::ifstream file(path);
  std::size_t limit = 0;
  return file >> limit ? limit : SIZE_MAX;
}

/// The lowest limit of a group and of its parents, up to the root. In a
/// container the path may be that of the host; groups that do not exist there
/// have no limit.
std::size_t least_limit(const std::string& root, std::string group,
                        const char* file) {
  auto least = SIZE_MAX;
  for (;;) {
    least = std::min(least, limit_in(root + group + "/" + file));
    const auto slash = group.rfind('/');
    if (slash == std::string::npos)
      return least;
    group.resize(slash);
  }
}

bool lists(const std::string& controllers, const std::string& wanted) {
  std::istringstream text(controllers);
  for (std::string name; std::getline(text, name, ',');)
    if (name == wanted)
      return true;
  return false;
}

std::size_t default_limit() {
  std::ifstream groups("/proc/self/cgroup");
  const std::string text{std::istreambuf_iterator<char>(groups), {}};
  const auto memory =
    std::min(physical_memory(), control_group_limit(text, "/sys/fs/cgroup"));
  return memory - memory / 16;
}

} // namespace

std::size_t control_group_limit(const std::string& groups,
                                const std::string& root) {
  auto least = SIZE_MAX;
  std::istringstream lines(groups);
  // "NUMBER:CONTROLLERS:PATH"; version 2 has no controllers.
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second =
      first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    const auto path = line.substr(second + 1);
    if (controllers.empty())
      least = std::min(least, least_limit(root, path, "memory.max"));
    else if (lists(controllers, "memory"))
      least = std::min(
        least, least_limit(root + "/memory", path, "memory.limit_in_bytes"));
  }
  return least;
}

std::size_t host_memory_limit() {
  static const auto machine = default_limit();
  const auto wanted = wanted_limit.load(std::memory_order_relaxed);
  return wanted > 0 ? wanted : machine;
}

void set_host_memory_limit(std::size_t bytes) noexcept {
  wanted_limit.store(bytes, std::memory_order_relaxed);
}

std::size_t host_memory_reserved() noexcept {
  return reserved.load(std::memory_order_relaxed);
}

bool reserve_host_memory(std::size_t bytes) noexcept {
  const auto limit = host_memory_limit();
  auto now = reserved.load(std::memory_order_relaxed);
  do
    if (bytes > limit || now > limit - bytes)
      return false;
  while (!reserved.compare_exchange_weak(now, now + bytes,
                                         std::memory_order_relaxed));
  return true;
}

void return_host_memory(std::size_t bytes) noexcept {
  reserved.fetch_sub(bytes, std::memory_order_relaxed);
}

} // namespace troupe

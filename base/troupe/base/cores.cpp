// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/cores.hpp>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace troupe {

namespace {

std::vector<int> allowed_cores() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(getpid(), sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set))
        cores.push_back(i);
  if (cores.empty())
    cores.push_back(0);
  return cores;
}

const std::vector<int>& process_cores() noexcept {
  // Never destroyed: an executor in static storage reads it at exit.
  static const auto& cores = *new std::vector<int>(allowed_cores());
  return cores;
}

} // namespace

std::size_t usable_cores() noexcept {
  return process_cores().size();
}

bool take_all_cores(std::size_t threads) noexcept {
  return threads == usable_cores();
}

cpu_set_t part_of_cores(std::size_t part, std::size_t parts) noexcept {
  const auto& cores = process_cores();
  const bool is_divided = cores.size() >= parts;
  const auto first = is_divided ? part * cores.size() / parts : 0;
  const auto last =
    is_divided ? (part + 1) * cores.size() / parts : cores.size();
  cpu_set_t set;
  CPU_ZERO(&set);
  for (auto i = first; i < last; ++i)
    CPU_SET(cores[i], &set);
  return set;
}

std::size_t current_core() noexcept {
  const auto& cores = process_cores();
  const auto found = std::find(cores.begin(), cores.end(), sched_getcpu());
  return static_cast<std::size_t>(found - cores.begin()) % cores.size();
}

bool pin_this_thread(std::size_t index) noexcept {
  const auto& cores = process_cores();
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cores[index % cores.size()], &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

stay_on_core::stay_on_core(std::size_t index) noexcept {
  const auto& cores = process_cores();
  moved_ = pthread_getaffinity_np(pthread_self(), sizeof before_, &before_) == 0
           && CPU_ISSET(cores[index % cores.size()], &before_)
           && pin_this_thread(index);
}

stay_on_core::~stay_on_core() {
  if (moved_)
    pthread_setaffinity_np(pthread_self(), sizeof before_, &before_);
}

} // namespace troupe

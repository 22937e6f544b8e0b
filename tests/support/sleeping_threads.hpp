// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace troupe::test {

/// True if a thread of this process sleeps, according to the kernel. False if
/// it has ended. Source: proc(5), /proc/pid/stat: "pid (name) state ...".
inline bool is_asleep(pid_t thread) {
  std::ifstream stat{"/proc/self/task/" + std::to_string(thread) + "/stat"};
  std::string line;
  std::getline(stat, line);
  return line.find(") S ") != std::string::npos;
}

/// Waits until all other threads of this process sleep. They have then finished
/// what they do at their start.
inline void wait_until_others_sleep() {
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/task")) {
    const pid_t thread = std::stoi(entry.path().filename().string());
    while (thread != gettid() && std::filesystem::exists(entry.path())
           && !is_asleep(thread))
      std::this_thread::yield();
  }
}

} // namespace troupe::test

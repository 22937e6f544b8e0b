// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/command_runner.hpp"

#include <support/files.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace troupe::test {

using while_launched = std::function<bool(pid_t, const std::string&)>;

/// Runs `troupe launch` with a script of a shell as the command.
inline command_result launch(std::size_t nodes, const std::string& script,
                             const std::vector<std::string>& options = {},
                             const while_launched& while_running = {}) {
  std::vector<std::string> words{"launch", "--nodes", std::to_string(nodes)};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", "/bin/sh", "-c", script});
  return run_troupe(words, while_running);
}

/// A script that runs `act` in rank number `rank`, and `otherwise` in others.
inline std::string in_rank(int rank, const std::string& act,
                           const std::string& otherwise) {
  return "if [ $TROUPE_RANK = " + std::to_string(rank) + " ]; then " + act
         + "; else " + otherwise + "; fi";
}

/// Waits until `is_true` returns true. False if that takes more than `limit`
/// seconds.
template <class Condition>
bool comes_true(Condition is_true, int limit = 10) {
  using clock = std::chrono::steady_clock;
  const auto end = clock::now() + std::chrono::seconds(limit);
  while (!is_true()) {
    if (clock::now() > end)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// The state of a process: 'R', 'S', 'Z' if only its parent has not noticed
/// its end, ...; 0 if there is no such process.
inline char state_of(const std::string& process) {
  std::ifstream file("/proc/" + process + "/stat");
  std::string text;
  std::getline(file, text);
  const auto end_of_name = text.rfind(')');
  return end_of_name == text.npos ? '\0' : text[end_of_name + 2];
}

inline bool has_ended(const std::string& process) {
  const auto state = state_of(process);
  return state == '\0' || state == 'Z';
}

/// Empty if it cannot be read: its process may have ended.
inline std::string read_if_there(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf(); // does not throw
  return text.str();
}

/// How often a text contains another.
inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos;
       at = text.find(part, at + part.size()))
    ++count;
  return count;
}

/// The last line of what a command printed to stderr.
inline std::string last_error(const command_result& result) {
  const auto lines = lines_of(result.err);
  return lines.empty() ? "" : lines.back();
}

} // namespace troupe::test

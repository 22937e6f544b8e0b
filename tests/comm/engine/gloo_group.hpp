// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../values.hpp"
#include "memory_engine.hpp"

#include <troupe/comm/engine/join.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace comm_test {

/// A folder in which processes meet.
class meeting_folder {
public:
  meeting_folder() : path_(socket_path()) {
    std::filesystem::create_directory(path_);
  }
  ~meeting_folder() { std::filesystem::remove_all(path_); }
  meeting_folder(const meeting_folder&) = delete;
  meeting_folder& operator=(const meeting_folder&) = delete;
  const std::string& path() const { return path_; }
  bool is_empty() const { return std::filesystem::is_empty(path_); }

private:
  std::string path_;
};

/// The ends of a group over Gloo whose processes are all in this one. Rank r is
/// in process r modulo `processes`.
inline std::vector<std::unique_ptr<comm::communicator>>
join_over_gloo(std::size_t processes, std::size_t ranks,
               const comm::engine_group_options& options = {}) {
  const meeting_folder at;
  return join_on_threads(processes, ranks, [&](std::size_t p) {
    comm::gloo_group_options own;
    static_cast<comm::engine_group_options&>(own) = options;
    own.store = comm::make_folder_store(at.path());
    own.process = p;
    own.processes = processes;
    for (auto r = p; r < ranks; r += processes)
      own.ranks.push_back(r);
    return comm::join_gloo_group(own);
  });
}

} // namespace comm_test

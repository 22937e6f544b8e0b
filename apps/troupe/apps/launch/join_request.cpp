// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/join_request.hpp>

#include <troupe/actors/remote/run_pass.hpp>
#include <troupe/base/error.hpp>
#include <troupe/comm/job_epoch.hpp>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <thread>

#include <unistd.h>

namespace troupe::apps {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using join_clock = std::chrono::steady_clock;

constexpr std::string_view request_prefix = "join-", answer_prefix = "joined-";
constexpr auto longest_wait = 10s; // for a launcher, which looks every 200 ms
constexpr auto between_looks = 20ms;

/// The file appears under its name in one step.
void write_whole(const std::string& path, const std::string& text) {
  const auto unfinished = path + ".new";
  if (std::ofstream out{unfinished};
      !(out << text << std::flush)
      || std::rename(unfinished.c_str(), path.c_str()) != 0)
    throw error(errc::io_failure,
                "cannot write " + path + ": " + std::strerror(errno));
}

/// The rendezvous folder of the launcher's elastic job. Folders in which ranks
/// of this host meet, and those of logs, have its name and an extension.
std::optional<std::string> folder_of_job(pid_t launcher) {
  const auto prefix = "job-" + std::to_string(launcher) + "-";
  std::error_code ignored;
  for (auto& entry : fs::directory_iterator(actors::run_folder(""), ignored))
    if (entry.path().filename().string().starts_with(prefix)
        && !entry.path().has_extension()
        && comm::read_epoch(entry.path().string()))
      return entry.path().string();
  return std::nullopt;
}

std::optional<join_answer> read_answer(const std::string& path) {
  std::ifstream in{path};
  std::string kind, text;
  if (!std::getline(in, kind) || !std::getline(in, text))
    return std::nullopt;
  return join_answer{kind == "yes", text};
}

/// Removes a file. False if it was not there any more.
bool take_away(const std::string& path) {
  return ::unlink(path.c_str()) == 0;
}

} // namespace

std::optional<join_request> take_join_request(const std::string& folder) {
  std::error_code ignored;
  for (auto& entry : fs::directory_iterator(folder, ignored)) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with(request_prefix) || name.ends_with(".new"))
      continue;
    std::ifstream in{entry.path()};
    join_request request{name.substr(request_prefix.size()), 0};
    in >> request.ranks;
    const bool has_ranks = in && request.ranks > 0;
    in >> request.hosts; // there may be none
    // Who has lost patience takes the request away.
    if (take_away(entry.path().string()) && has_ranks)
      return request;
  }
  return std::nullopt;
}

void answer_join_request(const std::string& folder, const join_request& request,
                         const join_answer& answer) {
  write_whole(folder + "/" + std::string(answer_prefix) + request.id,
              (answer.is_accepted ? "yes\n" : "no\n") + answer.text + "\n");
}

join_answer ask_to_join(pid_t launcher, const join_request& wanted) {
  const auto who = "process " + std::to_string(launcher);
  const auto folder = folder_of_job(launcher);
  if (!folder)
    throw error(errc::not_found, who
                                   + " runs no job of troupe launch --elastic "
                                     "that this user has started on this host");
  const auto id = std::to_string(::getpid());
  const auto request = *folder + "/" + std::string(request_prefix) + id;
  const auto answer = *folder + "/" + std::string(answer_prefix) + id;
  write_whole(request,
              std::to_string(wanted.ranks) + "\n" + wanted.hosts + "\n");
  const auto deadline = join_clock::now() + longest_wait;
  for (;;) {
    if (const auto found = read_answer(answer)) {
      take_away(answer);
      return *found;
    }
    const bool has_ended = !fs::exists(*folder);
    // A request that was taken is answered.
    if (has_ended || (join_clock::now() > deadline && take_away(request)))
      throw error(errc::not_found,
                  who
                    + (has_ended ? ": its job has ended" : " does not answer"));
    std::this_thread::sleep_for(between_looks);
  }
}

} // namespace troupe::apps

// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/job_epoch.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace troupe::comm {

namespace {

// No job is larger. Limits what is read from a file.
constexpr std::size_t most_members = 1 << 16;

std::string file_in(const std::string& folder) {
  return folder + "/epoch";
}

std::string ended_file(const std::string& folder, std::uint64_t epoch,
                       std::uint64_t member) {
  return folder + "/ended-" + std::to_string(epoch) + "-"
         + std::to_string(member);
}

std::string step_file(const std::string& folder, std::uint64_t epoch) {
  return folder + "/step-done-" + std::to_string(epoch);
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

[[noreturn]] void fail(const std::string& path) {
  throw error(errc::io_failure, "cannot write " + path + ": "
                                  + std::system_category().message(errno));
}

} // namespace

std::optional<std::size_t> job_epoch::rank_of(std::uint64_t member) const {
  const auto found = std::ranges::find(members, member);
  if (found == members.end())
    return std::nullopt;
  return static_cast<std::size_t>(found - members.begin());
}

// Not flushed to the disk: the folder does not outlive the machine's run.
void write_epoch(const std::string& folder, const job_epoch& epoch) {
  const auto path = file_in(folder), next = path + ".next";
  {
    std::ofstream out{next};
    out << "troupe epoch " << epoch.number << " of " << epoch.members.size()
        << (epoch.has_only_newcomers ? " new\n" : " known\n");
    for (auto member : epoch.members)
      out << member << '\n';
    if (!out.flush())
      fail(next);
  }
  if (std::rename(next.c_str(), path.c_str()) != 0)
    fail(path);
}

std::optional<job_epoch> read_epoch(const std::string& folder) {
  std::ifstream in{file_in(folder)};
  if (!in)
    return std::nullopt;
  job_epoch epoch;
  std::string troupe, word, of, kind;
  std::size_t members = 0;
  in >> troupe >> word >> epoch.number >> of >> members >> kind;
  epoch.has_only_newcomers = kind == "new";
  if (in && troupe == "troupe" && word == "epoch" && of == "of"
      && (kind == "new" || kind == "known") && members <= most_members) {
    epoch.members.resize(members);
    for (auto& member : epoch.members)
      in >> member;
  }
  if (!in || epoch.members.empty())
    throw error(errc::bad_file, file_in(folder) + ": no epoch of a job");
  return epoch;
}

void tell_epoch_ended(const std::string& folder, std::uint64_t epoch,
                      std::uint64_t member) {
  const auto path = ended_file(folder, epoch, member);
  if (!std::ofstream{path})
    fail(path);
}

bool has_epoch_ended(const std::string& folder, std::uint64_t epoch,
                     std::uint64_t member) {
  return exists(ended_file(folder, epoch, member));
}

void tell_step_done(const std::string& folder, std::uint64_t epoch) {
  for (auto& path : {step_file(folder, epoch), folder + "/step-done"})
    if (!std::ofstream{path})
      fail(path);
}

bool has_done_step(const std::string& folder) {
  return exists(folder + "/step-done");
}

bool has_done_step(const std::string& folder, std::uint64_t epoch) {
  return exists(step_file(folder, epoch));
}

} // namespace troupe::comm

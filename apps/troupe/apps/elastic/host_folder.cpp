// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/host_folder.hpp>

#include <troupe/apps/elastic/vote_text.hpp>
#include <troupe/base/error.hpp>
#include <troupe/comm/tls/job_credentials.hpp>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <system_error>

#include <sys/random.h>

namespace troupe::apps {

namespace {

std::string file_of_votes(const std::string& folder) {
  return folder + "/votes";
}

[[noreturn]] void fail_to_write(const std::string& path) {
  throw error(errc::io_failure, "cannot write " + path + ": "
                                  + std::system_category().message(errno));
}

std::string draw_folder_name() {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random)
    throw error(errc::io_failure, "no random numbers");
  std::array<char, 17> figures{};
  std::snprintf(figures.data(), figures.size(), "%016llx",
                static_cast<unsigned long long>(random));
  return figures.data();
}

} // namespace

vote_memory read_votes(const std::string& folder) {
  const auto path = file_of_votes(folder);
  vote_memory votes;
  if (std::ifstream in{path}) {
    std::ostringstream text;
    text << in.rdbuf();
    votes = parse_votes(text.str(), path);
  } else {
    votes.folder = draw_folder_name();
  }
  votes.decided = comm::read_epoch(folder);
  if (votes.accepted && votes.decided
      && votes.accepted->epoch.number <= votes.decided->number)
    votes.accepted
      .reset(); // whoever wrote the epoch ended before it wrote this
  return votes;
}

// Not flushed to the disk, as an epoch is not.
void write_votes(const std::string& folder, const vote_memory& votes) {
  const auto path = file_of_votes(folder), next = path + ".next";
  if (std::ofstream out{next}; !(out << to_text(votes)).flush())
    fail_to_write(next);
  if (std::rename(next.c_str(), path.c_str()) != 0)
    fail_to_write(path);
}

void begin_here(const std::string& folder, const job_processes& processes,
                const comm::job_epoch& epoch,
                const std::map<std::uint64_t, std::string>& credentials) {
  if (const auto before = comm::read_epoch(folder))
    for (const auto member : before->members)
      if (!epoch.rank_of(member))
        processes.kill(member);
  for (auto& [member, text] : credentials) {
    const auto path = comm::credentials_path(folder, epoch.number, member);
    std::remove(path.c_str()); // of one that ended while it wrote
    comm::write_credentials(path, comm::parse_credentials(text));
  }
  comm::write_epoch(folder, epoch);
}

} // namespace troupe::apps

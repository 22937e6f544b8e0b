// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/job_folders.hpp>

#include <troupe/actors/remote/run_pass.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <stdlib.h>
#include <unistd.h>

namespace troupe::apps {

own_folder::~own_folder() {
  std::error_code ignored; // what is left is in a folder for such things
  if (!path.empty())
    std::filesystem::remove_all(path, ignored);
}

std::string make_private_folder(const std::string& kind) {
  const auto in = actors::run_folder("");
  remove_ownerless(in);
  auto path = in + "/" + kind + "-" + std::to_string(::getpid()) + "-XXXXXX";
  if (!::mkdtemp(path.data()))
    throw error(errc::io_failure,
                "cannot make the folder " + path + ": " + std::strerror(errno));
  return path;
}

job_folders::job_folders(const std::string& logs)
  : rendezvous_(make_private_folder("job")), owner_(rendezvous_.path),
    own_logs_(logs.empty() ? rendezvous_.path + ".logs" : ""),
    logs_(logs.empty() ? own_logs_.path : logs) {
  std::error_code failure;
  std::filesystem::create_directory(logs_, failure); // a wrong parent is told
  if (failure)
    throw error(errc::io_failure, "cannot make the folder " + one_line(logs_)
                                    + ": " + failure.message());
}

std::string job_folders::job() const {
  return std::filesystem::path(rendezvous_.path).filename();
}

std::string job_folders::log_of(std::size_t rank) const {
  return logs_ + "/rank-" + std::to_string(rank) + ".log";
}

std::string job_folders::log_of_host(std::size_t host) const {
  return logs_ + "/host-" + std::to_string(host) + ".log";
}

} // namespace troupe::apps

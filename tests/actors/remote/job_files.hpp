// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/tls/job_credentials.hpp>

#include <support/files.hpp>

#include <chrono>
#include <cstddef>
#include <string>

namespace troupe::test {

/// Credentials of a job's processes, as files.
class job_files {
public:
  explicit job_files(std::size_t processes,
                     std::chrono::hours lifetime = std::chrono::hours{24}) {
    const auto all = comm::make_job_credentials(processes, lifetime);
    for (std::size_t p = 0; p < processes; ++p)
      comm::write_credentials(
        (folder_ / ("rank-" + std::to_string(p) + ".credentials")).string(),
        all[p]);
  }
  std::string path() const { return folder_.path().string(); }

private:
  temporary_folder folder_;
};

} // namespace troupe::test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace troupe::apps {

/// The folders of a job, in the folder that all runs of this user share. Its
/// destructor removes them.
class job_folders {
public:
  /// Makes an empty folder in which the ranks can meet, and one for logs.
  /// @param logs folder for logs, which is created where it is missing and
  ///   stays; empty: one of the job's own
  /// Throws error(io_failure), and error(invalid_argument) if others have
  /// access to the shared folder.
  explicit job_folders(const std::string& logs);
  ~job_folders();
  job_folders(const job_folders&) = delete;
  job_folders& operator=(const job_folders&) = delete;

  /// A name that no other job of this host has.
  std::string job() const;
  const std::string& rendezvous() const noexcept { return rendezvous_; }
  std::string log_of(std::size_t rank) const;
  /// The logs stay.
  void keep_logs() noexcept { keeps_logs_ = true; }

private:
  std::string rendezvous_;
  std::string logs_;
  bool keeps_logs_;
};

} // namespace troupe::apps

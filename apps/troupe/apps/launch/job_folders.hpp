// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/owned_folder.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace troupe::apps {

/// Removes a folder at its end. Does nothing if the path is empty.
struct own_folder {
  std::string path;

  explicit own_folder(std::string at) : path(std::move(at)) {}
  ~own_folder();
  own_folder(const own_folder&) = delete;
  own_folder& operator=(const own_folder&) = delete;
};

/// Makes a folder that only this user can enter, in the one that all runs of
/// this user share. Removes there what killed jobs have left. Throws
/// error(io_failure), and error(invalid_argument) if others have access to the
/// shared folder.
/// @param kind the begin of its name
std::string make_private_folder(const std::string& kind);

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

  /// A name that no other job of this host has.
  std::string job() const;
  const std::string& rendezvous() const noexcept { return rendezvous_.path; }
  std::string log_of(std::size_t rank) const;
  std::string log_of_host(std::size_t host) const;
  /// The logs stay.
  void keep_logs() noexcept { own_logs_.path.clear(); }

private:
  own_folder rendezvous_;
  owned_folder owner_;  ///< of that folder
  own_folder own_logs_; ///< empty: they stay
  std::string logs_;
};

} // namespace troupe::apps

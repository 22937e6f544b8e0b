// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/files/descriptor.hpp>

#include <filesystem>
#include <optional>
#include <string>

namespace troupe {

/// Keeps a folder for one run, until it is destroyed or its process ends,
/// however that ends. A run can have several processes, each with a claim.
///
/// All of them hold a shared lock (`flock`) on the file `owner`, which names
/// the run. Who gets an exclusive lock knows that nobody has a claim, and
/// writes its own name. So the claims of processes that were killed are in
/// nobody's way, and the file stays.
///
/// Thread rule: one thread.
class folder_claim {
public:
  /// Waits up to two seconds for processes of another run that are about to
  /// end. Throws error(invalid_argument), which names the owner, if another run
  /// has the folder; error(io_failure) if the file cannot be opened.
  /// @param folder exists
  /// @param run the same in all processes of the run, and no other run's; a
  /// line. Empty: the run has no other process, and each claim is a run
  folder_claim(const std::filesystem::path& folder, const std::string& run);

  /// What the user should know: set if the file system has no locks, so that
  /// other runs are not noticed.
  const std::optional<std::string>& doubt() const noexcept { return doubt_; }

private:
  descriptor file_; ///< with the lock
  std::optional<std::string> doubt_;
};

} // namespace troupe

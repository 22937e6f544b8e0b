// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace troupe {

/// Where a training run keeps its snapshots.
struct snapshot_options {
  std::filesystem::path folder = {}; ///< empty: there are none
  std::size_t keep = 2;              ///< of the newest ones, at least 1
  /// Go on from the newest snapshot in the folder, if there is one. If false,
  /// the folder must have none, because they would be mixed with those of this
  /// run.
  bool resume = false;
  /// The process joins a run that takes snapshots, and gets its state from the
  /// other processes. The folder may then have some.
  bool joins_others = false;
  /// The same in all processes of the run, and no other run's; a line. Another
  /// run that uses the folder at the same time is refused. Empty: the run has
  /// no other process.
  std::string run = {};
};

} // namespace troupe

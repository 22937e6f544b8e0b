// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/training/snapshots/snapshot.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The snapshots of a run. Each rank writes a file of its own:
/// `step-00000120.rank-0-of-2.npz`. A snapshot is complete when all ranks have
/// written theirs. Files appear under their names in one step, when they are on
/// the disk, and have checksums.
///
/// Thread rule: one thread at a time.
class snapshot_folder {
public:
  /// @param ranks number of ranks of this run
  snapshot_folder(std::filesystem::path path, std::size_t rank,
                  std::size_t ranks);

  /// Makes the folder if there is none. Throws error(io_failure) if nothing can
  /// be written there.
  void require_writable() const;

  /// Writes this rank's file. Then removes its files of snapshots that are
  /// older than the `keep` newest complete ones. Throws error(io_failure).
  void write(const snapshot& taken, std::size_t keep) const;

  /// True if there is a complete snapshot.
  bool has_any() const { return !complete().empty(); }

  /// The newest complete snapshot that can be read, of any number of ranks.
  /// Calls `damaged` for each newer one that cannot. Nothing if there is none.
  std::optional<snapshot>
  newest(arena& memory,
         const std::function<void(const std::string& why)>& damaged) const;

  /// "runs/step-00000120": what errors call a snapshot.
  std::string name_of(std::uint64_t steps) const;

private:
  /// The files of one snapshot, by rank.
  struct entry {
    std::uint64_t steps = 0;
    std::size_t ranks = 0;                    ///< number of files if complete
    std::vector<std::filesystem::path> files; ///< those that exist
  };

  std::string file_name(std::uint64_t steps) const;
  ///@{
  /// Newest first.
  std::vector<entry> list() const;
  std::vector<entry> complete() const;
  ///@}
  snapshot read(const entry& from, arena& memory) const;
  void remove_old(std::size_t keep) const;

  std::filesystem::path path_;
  std::size_t rank_;
  std::size_t ranks_;
};

} // namespace troupe

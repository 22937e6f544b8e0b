// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/stragglers/op_digest.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace troupe::apps {

/// True if a rank tells the others of the window with this number, which took
/// `ns`: of each one that took 0.1 s, of each second one of half that time, of
/// each fourth one of a quarter, and so on, so that a job of short steps does
/// not do little else. Ranks that differ by a factor of two still tell of
/// common windows.
bool is_told(std::uint64_t window, std::uint64_t ns);

/// Puts together the digests of all ranks for a window.
///
/// Thread rule: one thread.
class digest_windows {
public:
  explicit digest_windows(std::size_t ranks) : ranks_(ranks) {}

  /// Returns the digests of all ranks, by rank, once those with the number of
  /// this one are there. Windows before it, of which a rank has not told, are
  /// forgotten, as is the oldest one if 64 wait. Does nothing for a rank that
  /// there is not.
  std::optional<std::vector<op_digest>> add(std::size_t rank, op_digest digest);

private:
  std::size_t ranks_;
  std::map<std::uint64_t, std::map<std::size_t, op_digest>> waiting_;
};

} // namespace troupe::apps

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace troupe::apps {

/// A file that a command writes.
struct output_place {
  const char* option;      ///< which names it
  const std::string& path; ///< empty: nothing is written
  bool appends = false;    ///< to what the process has open, such as stdout
};

/// A descriptor of the process that is open for writing to the file of that
/// name; -1 if there is none.
int descriptor_to(const std::string& path);

/// Throws usage_error for a file that would take the place of something else:
/// of another one, of what is read, of a program that is saved, or of what the
/// process has open for writing.
///
/// In a folder that is read, or under links to it, a file may replace only one
/// with an extension of results: .jsonl, .svg, .npz. Nor may it be another name
/// (a link) of any other file there.
/// @param read files and folders; empty ones and names that are no files count
///   as nothing
/// @param saved the folder of `--save`, which may be one that is read; empty:
///   none
void require_places_of_their_own(std::span<const output_place> outputs,
                                 std::span<const std::string> read,
                                 const std::string& saved);

} // namespace troupe::apps

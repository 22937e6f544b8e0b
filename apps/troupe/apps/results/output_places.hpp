// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace troupe::apps {

/// A file that a command writes.
struct output_place {
  const char* option;      ///< the option that names it
  const std::string& path; ///< empty: nothing is written
  /// Can write to a file that the process has open, such as stdout.
  bool appends = false;
};

/// A descriptor of this process that is open for writing to the file of that
/// name; -1 if there is none.
int descriptor_to(const std::string& path);

/// Throws usage_error for an output file that would replace something else:
/// another output, an input, a file of the saved program, or a file that the
/// process has open for writing. Also for a descriptor (/dev/stdout, /dev/fd/3)
/// that is not open for writing. Unless the output appends, a descriptor must
/// lead to a file. Also if an input or an output has the name of a temporary of
/// an output, or is in such a folder, because writing the output removes what a
/// killed run left behind.
///
/// In a folder that is read, an output may replace only a file with an
/// extension of results: .jsonl, .svg, .npz, .trt. It must not be another name
/// (a link) of any other file there.
/// @param read files and folders; empty strings and names that are not files
///   are ignored
/// @param saved the folder of `--save`, which may be one that is read; empty:
///   none
void require_places_of_their_own(std::span<const output_place> outputs,
                                 std::span<const std::string> read,
                                 const std::string& saved);

} // namespace troupe::apps

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <vector>

namespace troupe::graph {

/// One version of a storage and who touches it.
struct version_accesses {
  handle_id var = no_handle;
  handle_id writer = no_handle;   ///< none for version 0
  std::vector<handle_id> readers; ///< op handles, ascending, each once

  bool read_by(handle_id op) const;
};

/// The accesses to the storage that all versions of a variable on a device
/// share, in program order: the writer of a version, its readers, the writer
/// of the next version. If the variable is persistable, the first version of
/// a step follows the last one of the step before.
struct storage_accesses {
  bool persistable = false;
  std::vector<version_accesses> versions; ///< ascending, not empty

  /// First version of a step that an op writes; null if nobody writes.
  const version_accesses* first_written() const;
  /// What a step finds when it begins: version 0, or null if no op reads it.
  const version_accesses* initial() const;
};

/// One entry per variable and device, in order of their first var handle.
/// Counts `op_handle::inputs`, `outputs` and `var_handle::generator` only, no
/// edges.
std::vector<storage_accesses> list_accesses(const ssa_graph& g);

} // namespace troupe::graph

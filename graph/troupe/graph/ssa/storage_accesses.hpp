// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace troupe::graph {

/// An op that reads the value that a version had some steps ago.
struct delayed_reader {
  handle_id op = no_handle;
  std::uint32_t distance = 1;
};

/// One version of a storage and the ops that access it.
struct version_accesses {
  handle_id var = no_handle;
  handle_id writer = no_handle; ///< `no_handle` for version 0
  /// Op handles that read it in its own step, ascending, each once.
  std::span<const handle_id> readers = {};
  /// Op handles that read it in later steps, ascending.
  std::span<const delayed_reader> delayed_readers = {};
};

/// The accesses to the storage that all versions of a variable on a device
/// share, in program order: the writer of a version, its readers, the writer
/// of the next version. If the variable is persistable, the first version of
/// a step follows the last one of the step before.
struct storage_accesses {
  bool persistable = false;
  std::span<const version_accesses> versions = {}; ///< ascending, not empty

  /// First version of a step that an op writes; null if no op writes.
  const version_accesses* first_written() const;
  /// The version at the start of a step: version 0, or null if no op reads it.
  const version_accesses* initial() const;
};

/// The accesses of a graph, one entry per variable and device, by
/// `var_handle::storage`. Uses only `op_handle::inputs`, `outputs` and
/// `var_handle::generator`, not edges.
class access_list {
public:
  explicit access_list(const ssa_graph& g);
  access_list(const access_list&) = delete; // entries refer to the arrays
  access_list& operator=(const access_list&) = delete;

  auto begin() const { return storages_.begin(); }
  auto end() const { return storages_.end(); }

private:
  void list_readers(const ssa_graph& g);
  void list_delayed_readers(const ssa_graph& g);
  void list_versions(const ssa_graph& g);

  std::vector<handle_id> readers_;
  std::vector<std::size_t> first_reader_; // per var, plus the end of the last
  std::vector<delayed_reader> delayed_readers_;
  // As above; empty if there are none.
  std::vector<std::size_t> first_delayed_reader_;
  std::vector<version_accesses> versions_;
  std::vector<storage_accesses> storages_;
};

} // namespace troupe::graph

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe::graph {

/// Makes the handles of a graph one op after the other: a read takes the last
/// version of a variable on a device, a write makes the next one.
class handle_maker {
public:
  /// @param b declares the variables; outlives the maker
  handle_maker(const block& b, std::vector<device_id> devices);

  std::size_t num_devices() const noexcept { return graph_.devices.size(); }

  /// Adds a description that the following ops share.
  void add_desc(op_desc desc) { descs_.push_back(std::move(desc)); }
  /// Adds an op handle with the last description; returns a reference that is
  /// valid until the next call.
  op_handle& add_op(op_kind kind, std::size_t device);

  /// Adds the last version of `name` on `device` to the inputs of the last op.
  /// Without one it is version 0: held by the scope if persistable, else fed.
  /// Throws error(graph_invalid), naming op and variable, if it can be neither.
  void read(const std::string& name, std::size_t device);
  /// Adds a new version of `name` on `device` to the outputs of the last op.
  void write(const std::string& name, std::size_t device);
  /// True if `read` finds a value without counting on a feed.
  bool has_value(const std::string& name, std::size_t device) const;

  /// The graph, without edges. The maker is spent.
  ssa_graph finish();

private:
  std::size_t add_var(var_handle v);
  std::size_t initial_version(const std::string& name, std::size_t device);
  [[noreturn]] void fail_unwritten(const std::string& name,
                                   std::size_t device) const;

  const block& block_;
  ssa_graph graph_; // until the end, ops name variables by index
  std::vector<op_desc> descs_;
  std::vector<std::size_t> desc_of_op_;
  // Per device: name -> index of the last version.
  std::vector<std::unordered_map<std::string, std::size_t>> latest_;
};

} // namespace troupe::graph

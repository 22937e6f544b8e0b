// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe::graph {

/// A variable's name as a number, from 0 on.
using name_id = std::uint32_t;

/// Makes the handles of a graph one op after the other: a read takes the last
/// version of a variable on a device, a write makes the next one.
class handle_maker {
public:
  /// @param b declares the variables; outlives the maker
  handle_maker(const block& b, std::vector<device_id> devices);

  std::size_t num_devices() const noexcept { return graph_.devices.size(); }

  /// The number of a name; a new one if it is new.
  name_id id_of(std::string_view name);
  std::size_t num_names() const noexcept { return names_.size(); }
  const std::string& name_of(name_id id) const { return names_[id].name; }

  /// Adds a description that the following ops share.
  void add_desc(op_desc desc) { descs_.push_back(std::move(desc)); }
  /// Adds an op handle with the last description; returns a reference that is
  /// valid until the next call.
  op_handle& add_op(op_kind kind, std::size_t device);

  /// Adds the last version of `name` on `device` to the inputs of the last op.
  /// Without one it is version 0: held by the scope if persistable, an empty
  /// tensor array, else fed.
  /// Throws error(graph_invalid), naming op and variable, if it can be neither.
  void read(name_id name, std::size_t device);
  /// Adds a new version of `name` on `device` to the outputs of the last op.
  void write(name_id name, std::size_t device);
  /// True if `read` finds a value without counting on a feed.
  bool has_value(name_id name, std::size_t device) const;

  /// The graph, without edges. The maker is spent.
  ssa_graph finish();

private:
  struct known_name {
    std::string name;
    const var_desc* declared; ///< null if the block does not declare it
  };

  /// Index of the last version; `none` without one.
  std::size_t& latest(name_id name, std::size_t device) {
    return latest_[name * num_devices() + device];
  }
  std::size_t add_var(name_id name, var_handle v);
  std::size_t initial_version(name_id name, std::size_t device);
  [[noreturn]] void fail_unwritten(const std::string& name,
                                   std::size_t device) const;

  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  const block& block_;
  ssa_graph graph_; // until the end, ops name variables by index
  std::vector<op_desc> descs_;
  std::vector<std::size_t> desc_of_op_;
  std::deque<known_name> names_; // by id; stay where they are
  std::unordered_map<std::string_view, name_id> ids_;
  std::vector<std::size_t> latest_; // by name and device
};

} // namespace troupe::graph

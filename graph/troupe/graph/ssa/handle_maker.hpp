// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/name_table.hpp>
#include <troupe/graph/ssa_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace troupe::graph {

/// Makes the handles of a graph op by op. A read uses the last version of a
/// variable on a device, a write creates the next one.
class handle_maker {
public:
  /// @param p its main block declares the variables
  handle_maker(std::shared_ptr<const program> p,
               std::vector<device_id> devices);

  std::size_t num_devices() const noexcept { return graph_.devices.size(); }

  /// The number of a name. A new name gets a new number.
  name_id id_of(std::string_view name);
  std::size_t num_names() const noexcept { return names_.size(); }
  std::string_view name_of(name_id id) const { return names_[id]; }

  /// Makes all devices use the variable of the first device. Called before the
  /// first op.
  void share(name_id name) { shared_[name] = true; }
  bool is_shared(name_id name) const { return shared_[name]; }

  /// Sets the description that the following ops share: one from the program,
  /// or one made for them.
  void describe(const op_desc& desc) { desc_ = &desc; }
  void make_desc(op_desc desc);
  /// Adds an op handle with that description. The returned reference is valid
  /// until the next call.
  op_handle& add_op(op_kind kind, std::size_t device);

  /// Adds the last version of `name` on `device` to the inputs of the last op,
  /// which must have no outputs yet. If there is no version, version 0 is
  /// added: the value in the scope if the variable is persistable, an empty
  /// array if it is a tensor array, otherwise a feed. Throws
  /// error(graph_invalid), naming op and variable, if it can be neither.
  void read(name_id name, std::size_t device);
  /// Adds a new version of `name` on `device` to the outputs of the last op.
  void write(name_id name, std::size_t device);
  /// True if `read` would find a value that does not need a feed.
  bool has_value(name_id name, std::size_t device) const;

  /// Returns the graph, without edges. The maker must not be used afterwards.
  ssa_graph finish();

private:
  /// Start of an op's inputs, which its outputs follow.
  struct argument_range {
    std::size_t first;
    std::size_t inputs;
  };

  /// The device whose variable an op of `device` uses.
  std::size_t place_of(name_id name, std::size_t device) const {
    return shared_[name] ? 0 : device;
  }
  /// Index of the last version; `none` if there is none.
  std::uint32_t latest(name_id name, std::size_t device) const {
    return latest_[name * num_devices() + place_of(name, device)];
  }
  std::uint32_t add_var(name_id name, std::size_t device);
  std::uint32_t initial_version(name_id name, std::size_t device);
  [[noreturn]] void fail_unwritten(name_id name, std::size_t device) const;

  static constexpr std::uint32_t none = UINT32_MAX;

  const block& block_;
  ssa_graph graph_; // until `finish`, arguments are indices of variables
  std::shared_ptr<handle_sources> sources_;
  const op_desc* desc_ = nullptr;
  std::vector<argument_range> ranges_; // by op
  name_table names_;
  std::vector<const var_desc*> declared_; // by name; null: not declared
  std::vector<bool> shared_;              // by name
  std::vector<std::uint32_t> latest_;     // by name and device
};

} // namespace troupe::graph

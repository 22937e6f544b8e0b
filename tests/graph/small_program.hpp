// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_builder.hpp>

#include <string>
#include <vector>

namespace troupe::graph::testing {

using names = std::vector<std::string>;

/// Writes programs by hand: ops in order, undeclared variables become
/// temporaries.
class small_program {
public:
  small_program& temporary(const std::string& name,
                           var_kind kind = var_kind::dense,
                           dtype type = dtype::float32);
  small_program& persistable(const std::string& name, shape dims = {4});
  /// Inputs in slot X, outputs in slot Out. `role_vars`: param, grad, ...
  small_program& op(const std::string& type, const names& inputs,
                    const names& outputs, int role = role_forward,
                    const names& role_vars = {});
  /// The op that starts the backward pass: fills loss@GRAD.
  small_program& loss_gradient(const std::string& loss);

  program desc;
};

/// y = x * w + b, loss = mean(y), sgd on w and b: `b_grad` is completed first.
small_program linear_with_sgd();

/// `n` CPU devices 0 .. n-1.
std::vector<device_id> cpus(std::size_t n);

/// Options for `n` CPU devices.
build_options on_cpus(std::size_t n,
                      merge_strategy strategy = merge_strategy::all_reduce,
                      const names& fetches = {});

ssa_graph build(const small_program& p, const build_options& options = {});

/// A line per op: "type@device: inputs -> outputs", variables as name:version
/// with @device where it is not the op's.
std::string describe_ops(const ssa_graph& g);

/// A line per edge that is neither op -> own output nor input -> op at
/// distance 0: "from -> to kind +distance", ops as type@device.
std::string describe_hazards(const ssa_graph& g);

bool has_edge(const ssa_graph& g, handle_id from, handle_id to, edge_kind kind,
              std::uint32_t distance);

/// The only op of a type on a device; no_handle if there is none or several.
handle_id find_op(const ssa_graph& g, const std::string& type,
                  std::size_t device = 0);

/// A version of a variable; no_handle if there is none.
handle_id find_var(const ssa_graph& g, const std::string& name,
                   std::uint32_t version, std::size_t device = 0);

} // namespace troupe::graph::testing

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/op_schema.hpp>
#include <troupe/kernels/kernel.hpp>

namespace troupe::graph {

/// An op of an application: what the graph knows of it, and its code.
/// docs/ops.md has an example.
struct own_op {
  /// Type, slots, shapes and gradient rule. Without a gradient rule the op
  /// stops gradients. The type's text must outlive the tables: a literal.
  op_schema schema;
  kernel_function run = nullptr;       ///< of the op
  kernel_function gradient = nullptr;  ///< of "<type>_grad", if there is a rule
  device_kind kind = device_kind::cpu; ///< where both run
};

/// Adds the op to the tables that a network (`network::network`) and its
/// executors (`executor_options::kernels`) use. Kernels for further kinds of
/// devices are added to the kernel table alone.
///
/// Throws error(invalid_argument), naming the op type, for a type that one of
/// the tables has already, and for an op that lacks its type, its shapes or a
/// kernel. Both tables are then unchanged.
void add_op(op_schema_table& schemas, kernel_table& kernels, const own_op& op);

} // namespace troupe::graph

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/kernels/kernel.hpp>

#include <memory>
#include <optional>

namespace troupe::actors {

/// Makes kernels of main block ops fail if an output has another shape or dtype
/// than the declared one. The error then names this op and not the op that
/// reads the output. Only op types that an application adds are checked, so
/// Troupe's own ops have no overhead.
///
/// Declared extents of -1 match any extent, and variables declared without
/// extents match anything. If several devices share a batch whose size the
/// program fixes, extents of a shard are unknown and only the rank is checked.
class output_check {
public:
  /// `p` must outlive the check.
  explicit output_check(const graph::program& p);

  /// Returns `code`, the kernel of op `op` of the main block, or a kernel that
  /// runs it and then checks the outputs. The check throws
  /// error(shape_mismatch | dtype_mismatch) naming op type, slot, variable,
  /// what was made and what was declared.
  std::unique_ptr<kernel> of(std::unique_ptr<kernel> code,
                             const graph::op_desc& op);

private:
  bool fixes_batch();

  const graph::program& program_;
  std::optional<bool> batch_is_fixed_; // once an op has asked
};

} // namespace troupe::actors

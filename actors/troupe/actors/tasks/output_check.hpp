// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/kernels/kernel.hpp>

#include <memory>
#include <optional>

namespace troupe::actors {

/// Lets kernels of ops of a main block fail when one of their outputs has
/// another shape than the program declares, so that the error names this op and
/// not the one that reads the output. Only for op types that an application
/// adds: Troupe's own cost nothing.
///
/// Declared extents of -1, and variables declared without extents, fit any
/// shape. If several devices share a batch whose size the program fixes, no
/// extent of a part is known, and only the rank counts.
class output_check {
public:
  /// `p` outlives the check.
  explicit output_check(const graph::program& p);

  /// `code` of op `op` of the main block, or a kernel whose `run` calls it and
  /// then throws error(shape_mismatch) naming op type, slot and variable and
  /// both shapes.
  std::unique_ptr<kernel> of(std::unique_ptr<kernel> code,
                             const graph::op_desc& op);

private:
  bool fixes_batch();

  const graph::program& program_;
  std::optional<bool> batch_is_fixed_; // once an op has asked
};

} // namespace troupe::actors

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/kernels/kernel.hpp>

#include <memory>

namespace troupe::actors {

/// Lets `code`, the kernel of an op of the main block of `p`, fail when one of
/// its outputs has another shape than the program declares, so that the error
/// names this op and not the one that reads the output. Only for op types that
/// an application adds: Troupe's own come back as they are, and cost nothing.
///
/// Declared extents of -1, and variables declared without extents, fit any
/// shape. Where several devices share a batch whose size the program fixes, no
/// extent of a part is known, and only the rank counts. `p` is read here alone.
///
/// `run` then throws error(shape_mismatch) naming op type, slot and variable
/// and both shapes.
std::unique_ptr<kernel> check_outputs(std::unique_ptr<kernel> code,
                                      const graph::program& p,
                                      const graph::op_desc& op);

} // namespace troupe::actors

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <support/op_case.hpp>

#include <troupe/kernels/device.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/lod_sharing.hpp>
#include <troupe/kernels/stream.hpp>

#include <memory>
#include <string>

namespace troupe::test {

/// Runs one op on a CPU device, as often as wanted with the same kernel
/// instance, so that what the kernel keeps between runs is tested too.
class op_runner {
public:
  /// Throws error(unsupported_op) if the table has not the case's op.
  /// @param queue the stream that the kernel runs on; there is none unless it
  ///   has helpers
  op_runner(const kernel_table& table, const op_case& c,
            const stream_options& queue = {});

  /// Runs the kernel on the case's inputs and returns its outputs. The case
  /// may differ from the first in all but type and attributes. Variables are
  /// named slot_index: "Out_0".
  op_values run(const op_case& c);

private:
  attribute_map attributes_;
  std::unique_ptr<device> device_;
  std::unique_ptr<stream> queue_;
  std::unique_ptr<kernel> kernel_;
  lod_rule rule_;
};

/// Runs the case once.
op_values run_op(const kernel_table& table, const op_case& c);

} // namespace troupe::test

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

/// Runs one op on a device: a CPU device unless another one is given. All runs
/// use the same kernel instance, so that its state between runs is tested too.
class op_runner {
public:
  /// Throws error(unsupported_op) if the table lacks the case's op.
  /// @param queue the stream on which the kernel runs. Without helpers there is
  ///   no stream.
  op_runner(const kernel_table& table, const op_case& c,
            const stream_options& queue = {});
  /// On a stream of `on`, which may complete work later. The case has no
  /// selected rows.
  op_runner(const kernel_table& table, const op_case& c,
            std::shared_ptr<device> on);

  /// Runs the kernel on the case's inputs and returns its outputs. The case
  /// must have the same type and attributes as the first one. Variables are
  /// named slot_index: "Out_0".
  op_values run(const op_case& c);

private:
  attribute_map attributes_;
  std::shared_ptr<device> device_;
  std::unique_ptr<stream> queue_;
  std::unique_ptr<kernel> kernel_;
  lod_rule rule_;
};

///@{
/// Runs the case once.
op_values run_op(const kernel_table& table, const op_case& c);
op_values run_op(const kernel_table& table, const op_case& c,
                 std::shared_ptr<device> on);
///@}

} // namespace troupe::test

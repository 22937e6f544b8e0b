// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/communicator.hpp>
#include <troupe/comm/local/reduce_kernels.hpp>
#include <troupe/kernels/tensor.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace troupe::comm::local {

/// The sum of one tensor per rank, in memory that the CPU can read and write.
/// The work is cut into parts that can run on different threads. Every part
/// adds its range of all tensors in one pass, element by element in rank order.
/// Results therefore do not depend on the number of parts, on the threads that
/// run them or on their order.
///
/// Use: call `bind` with this step's tensors, then run every part once. Reuse
/// the instance for every step: it allocates nothing after the first.
///
/// Thread rule: one thread calls `bind`. Then, different parts may run
/// concurrently, each part once. The caller makes sure that all parts have
/// ended before the next `bind`.
class dense_sum {
public:
  /// @param max_parts upper limit of `parts()`
  explicit dense_sum(std::size_t max_parts);

  /// Takes the tensors, one per rank; one without memory is not added. They are
  /// plain and of the same shape and dtype: float32, float16, bfloat16 or
  /// int32. `output` has the same shape and dtype and may be one of the inputs.
  /// All memory must stay alive until the parts have run.
  ///
  /// Throws error(invalid_argument) if no rank has a tensor or the output has
  /// no memory, and error(shape_mismatch | dtype_mismatch) naming the rank.
  /// After an error nothing is bound.
  /// @param kind for errors
  void bind(collective_kind kind, std::span<const tensor> inputs,
            tensor& output);

  /// Number of parts of the bound work, from 1 to `max_parts`; small tensors
  /// have one part. 0 if nothing is bound.
  std::size_t parts() const noexcept { return parts_; }
  /// Runs part `part`, which is less than `parts()`.
  void run_part(std::size_t part) const noexcept;

private:
  void cut_parts();

  std::size_t max_parts_;
  std::size_t cache_bytes_;
  dtype type_ = dtype::float32;
  std::vector<const std::byte*> sources_;
  destination to_;
  std::size_t elements_ = 0;
  std::size_t part_elements_ = 0;
  std::size_t parts_ = 0; // 0: nothing is bound
};

} // namespace troupe::comm::local

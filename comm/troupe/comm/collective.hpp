// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace troupe::comm {

/// How the values of the ranks are merged. `mean` divides the sum by the number
/// of ranks, including idle ones; integers are rounded towards zero. A NaN in
/// any rank gives NaN, also for `max`.
enum class reduce_op : std::uint8_t { sum, mean, max };

enum class collective_kind : std::uint8_t {
  all_reduce, ///< out[r] = op over ranks of in[0..R-1], on every rank r
  reduce,     ///< the same, on rank `root` only
  broadcast,  ///< out[r] = in[root]
  all_gather, ///< out[r] = in[0], in[1], ... concatenated along axis 0
  /// out[r] = slice r of R equal slices (along axis 0) of op over ranks of
  /// in[0..R-1]
  reduce_scatter,
};

std::string_view to_string(collective_kind kind) noexcept;

/// Options of a collective.
struct collective_options {
  collective_kind kind = collective_kind::all_reduce;
  reduce_op op = reduce_op::sum;
  std::size_t root = 0;
  /// True: elements are added in rank order, so results are bit-identical in
  /// every run. False: any faster order is allowed.
  bool deterministic = true;
  /// For all_reduce and broadcast of at least two ranks: all outputs share one
  /// memory, marked by `tensor::share`, instead of each holding a copy. Meant
  /// for CPU devices of one process: their kernels do not write shared memory
  /// in place. The shared memory is that of the first output that has memory
  /// (broadcast: of the root's input). The other outputs need no memory.
  bool share_results = false;
  /// Upper limit of `parts()`: how many threads can work on the collective.
  std::size_t max_parts = 1;
};

/// One collective over the tensors of all ranks of a group. The work is cut
/// into parts that can run on different threads.
///
/// Use: call `bind` with this step's tensors, run every part once, then call
/// `finish`. Reuse the instance for every step: if tensor sizes stay the same,
/// it allocates nothing after the first.
///
/// Supported dtypes: float32, float16 and bfloat16 (both added in float32 and
/// rounded once), and int32 (added in 64 bits). broadcast and all_gather take
/// any dtype. All tensors are plain and of one dtype. All inputs have the same
/// shape, and so do all outputs.
///
/// Thread rule: one thread calls `bind` and `finish`. In between, different
/// parts may run concurrently, each part once. The caller makes sure that all
/// parts have ended before `finish`.
class collective {
public:
  virtual ~collective() = default;

  /// Takes this step's tensors, one per rank. All tensors and the array
  /// `outputs` must stay alive until `finish`. `outputs[r]` may be the same
  /// tensor as `inputs[r]` (in place), except for all_gather and reduce_scatter
  /// of several ranks.
  ///
  /// Outputs must have memory, except for ranks that get no result and outputs
  /// that `share_results` exempts. This memory is overwritten, so it must not
  /// be shared with anyone outside the group.
  ///
  /// An input without memory marks an idle rank. It counts as zeros in sum,
  /// mean and all_gather. If all ranks are idle, sum and mean give zeros.
  ///
  /// Throws error(shape_mismatch | dtype_mismatch) naming the rank, and
  /// error(invalid_argument) for a wrong number of tensors, an output without
  /// memory, an output of all_gather or reduce_scatter that has another
  /// tensor's memory, a layout that is not plain, a broadcast from an idle
  /// root, or a max over idle ranks only. After an error nothing is bound.
  virtual void bind(std::span<const tensor> inputs,
                    std::span<tensor> outputs) = 0;

  /// Number of parts of the bound work, from 1 to `max_parts`; small tensors
  /// have one part. 0 if nothing is bound.
  virtual std::size_t parts() const noexcept = 0;
  /// Runs part `part`, which is less than `parts()`.
  virtual void run_part(std::size_t part) noexcept = 0;

  /// Publishes the results in `outputs`, sharing memory if `share_results` is
  /// set, and releases the tensors.
  virtual void finish() = 0;
};

/// Makes a collective between devices of this process whose memory the CPU can
/// read and write. Throws error(invalid_argument) if `root` is out of range or
/// there are no ranks.
std::unique_ptr<collective>
make_local_collective(std::size_t ranks, const collective_options& options);

/// Calls `bind`, runs all parts in turn on this thread, and calls `finish`.
void run(collective& c, std::span<const tensor> inputs,
         std::span<tensor> outputs);

} // namespace troupe::comm

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace troupe::comm {

/// How values of several ranks are merged. `mean` divides the sum by the
/// number of ranks, idle ones included (integers: towards zero). A NaN in any
/// rank gives NaN, for max too.
enum class reduce_op : std::uint8_t { sum, mean, max };

enum class collective_kind : std::uint8_t {
  all_reduce,     ///< out[r] = op over ranks of in[0..R-1], on every rank r
  reduce,         ///< the same, on rank `root` alone
  broadcast,      ///< out[r] = in[root]
  all_gather,     ///< out[r] = in[0], in[1], ... joined along axis 0
  reduce_scatter, ///< out[r] = the r-th of R equal slices along axis 0 of op
                  ///< over in
};

std::string_view to_string(collective_kind kind) noexcept;

/// What a collective does and how.
struct collective_options {
  collective_kind kind = collective_kind::all_reduce;
  reduce_op op = reduce_op::sum;
  std::size_t root = 0;
  /// Elements are added in rank order, so that results are bit-equal from run
  /// to run. False allows any order that is faster.
  bool deterministic = true;
  /// all_reduce and broadcast of at least two ranks: afterwards all outputs
  /// name one memory, marked by tensor::share, instead of holding a copy each.
  /// Right for CPU devices of one process, whose kernels then write elsewhere
  /// instead of in place. The memory is that of the first output that has some
  /// (broadcast: of the root's input); other outputs need none.
  bool share_results = false;
  /// The most pieces that `parts()` may report: how many threads can help.
  std::size_t max_parts = 1;
};

/// One collective over the tensors of all ranks of a group, cut in pieces that
/// may run on different threads.
///
/// Use: `bind` with this step's tensors, then every piece once, then `finish`.
/// An instance is kept and bound again each step; with tensors of the same
/// sizes it allocates nothing from the second time on.
///
/// dtypes: float32, float16, bfloat16 (both added in float32, rounded once)
/// and int32 (added in 64 bits); broadcast and all_gather take any. All ranks'
/// tensors are plain and of one dtype and shape (the all_gather inputs and
/// reduce_scatter outputs of equal extents along axis 0).
///
/// Thread rule: `bind` and `finish` by one thread; `run_part` concurrently for
/// different parts after `bind`, each part once; the caller orders `finish`
/// after all parts.
class collective {
public:
  virtual ~collective() = default;

  /// Takes this step's tensors, one per rank; the memory of both and the array
  /// `outputs` must live until `finish`. `outputs[r]` may be the tensor
  /// `inputs[r]` (in place; not for all_gather and reduce_scatter of several
  /// ranks) or another. Outputs have memory already, except of ranks that get
  /// no result and where `share_results` makes it needless; nobody but the
  /// group's ranks may share it, for it is overwritten.
  ///
  /// An input without memory is a rank that contributes nothing (an idle
  /// device): zero to sum, mean and all_gather. If all ranks are idle, sum and
  /// mean give zeros.
  ///
  /// Throws error(shape_mismatch | dtype_mismatch) naming the rank, and
  /// error(invalid_argument) for a wrong number of tensors, an output without
  /// memory or in another's place, a layout that is not plain, a broadcast
  /// whose root is idle, a max of idle ranks alone. Nothing is bound then.
  virtual void bind(std::span<const tensor> inputs,
                    std::span<tensor> outputs) = 0;

  /// Pieces of the bound work, 1 to max_parts; small tensors have one. 0 when
  /// nothing is bound.
  virtual std::size_t parts() const noexcept = 0;
  /// Does piece `part`, below `parts()`.
  virtual void run_part(std::size_t part) noexcept = 0;

  /// Makes results visible in `outputs` (sharing memory, if so asked) and
  /// forgets the tensors.
  virtual void finish() = 0;
};

/// A collective between devices of this process whose memory the CPU reads
/// and writes directly. Throws error(invalid_argument) on a root out of range
/// and for no ranks.
std::unique_ptr<collective>
make_local_collective(std::size_t ranks, const collective_options& options);

/// bind, all parts in turn on this thread, finish.
void run(collective& c, std::span<const tensor> inputs,
         std::span<tensor> outputs);

} // namespace troupe::comm

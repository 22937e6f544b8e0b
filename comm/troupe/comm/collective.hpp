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
/// number of ranks (integers: towards zero).
enum class reduce_op : std::uint8_t { sum, mean, max };

enum class collective_kind : std::uint8_t {
  all_reduce,     ///< out[r] = op over ranks of in[0..R-1], on every rank r
  reduce,         ///< the same, on rank `root` alone
  broadcast,      ///< out[r] = in[root]
  all_gather,     ///< out[r] = in[0], in[1], ... joined along axis 0
  reduce_scatter, ///< out[r] = the r-th of R equal slices along axis 0 of op over in
};

std::string_view to_string(collective_kind kind) noexcept;

struct collective_options {
  collective_kind kind = collective_kind::all_reduce;
  reduce_op op = reduce_op::sum;
  std::size_t root = 0;
  /// Elements are added in rank order, so that results are bit-equal from run
  /// to run. False allows any order that is faster.
  bool deterministic = true;
  /// all_reduce and broadcast: ranks may end up naming the same memory
  /// (tensor::share) instead of holding a copy each. Right for CPU devices of
  /// one process, whose kernels then write elsewhere instead of in place.
  bool share_results = false;
  /// The most pieces that `parts()` may report: how many threads can help.
  std::size_t max_parts = 1;
};

/// One collective over the tensors of all ranks of a group, cut in pieces that
/// may run on different threads.
///
/// Use: `bind` with this step's tensors, then every piece once, then `finish`.
/// An instance is kept and bound again each step; it allocates nothing once
/// the number of ranks is known.
///
/// dtypes: float32, float16, bfloat16 (both added in float32, rounded once)
/// and int32. All ranks' tensors are plain and of one dtype and shape (the
/// all_gather inputs and reduce_scatter outputs of equal extents along axis 0).
///
/// Thread rule: `bind` and `finish` by one thread; `run_part` concurrently for
/// different parts after `bind`, each part once; the caller orders `finish`
/// after all parts.
class collective {
public:
  virtual ~collective() = default;

  /// Takes this step's tensors, one per rank. `outputs[r]` may be the tensor
  /// `inputs[r]` (in place) or another; outputs have memory already except
  /// where `share_results` makes that needless. An input without memory is a
  /// rank that contributes nothing (an idle device). Throws
  /// error(shape_mismatch | dtype_mismatch) naming the rank; nothing is bound.
  virtual void bind(std::span<const tensor> inputs, std::span<tensor> outputs) = 0;

  /// Pieces of the bound work, 1 to max_parts; small tensors have one.
  virtual std::size_t parts() const noexcept = 0;
  virtual void run_part(std::size_t part) noexcept = 0;

  /// Makes results visible in `outputs` (sharing memory, if so asked) and
  /// forgets the tensors.
  virtual void finish() = 0;
};

/// A collective between devices of this process whose memory the CPU reads
/// and writes directly. Throws error(invalid_argument) on a root out of range.
std::unique_ptr<collective> make_local_collective(std::size_t ranks,
                                                  const collective_options& options);

/// bind, all parts in turn on this thread, finish.
void run(collective& c, std::span<const tensor> inputs, std::span<tensor> outputs);

} // namespace troupe::comm

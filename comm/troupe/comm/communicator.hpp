// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/comm/parcel.hpp>
#include <troupe/kernels/stream.hpp>
#include <troupe/kernels/variable.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

class device;
class part_runner;

} // namespace troupe

/// Groups of ranks, in one process or several, that merge values and send them
/// to each other.
namespace troupe::comm {

/// What the ranks of a group do together with a value of each.
enum class collective_kind : std::uint8_t {
  all_reduce, ///< every rank gets the sum of all ranks' values
  reduce,     ///< the root gets the sum of all ranks' values
  broadcast,  ///< every rank gets the root's value
};

/// The name of the value, such as "all_reduce".
std::string_view to_string(collective_kind kind) noexcept;

/// What one rank gives and gets of one variable.
struct rank_value {
  /// The variable's name, for errors. It is the same on all ranks.
  std::string_view name = {};
  /// What the rank gives: a tensor of any layout, or selected rows. Null, or a
  /// variable that holds neither: the rank is idle and adds nothing. The memory
  /// of the value may be overwritten with the result. A broadcast reads only
  /// the root's.
  variable* in = nullptr;
  /// Where the result goes; may be `in`. Null: the rank needs no result. A
  /// reduce writes only the root's.
  variable* out = nullptr;
};

/// One rank's part in a collective: a bucket of variables that are merged one
/// by one.
struct collective_call {
  collective_kind kind = collective_kind::all_reduce;
  /// The rank that a reduce gives its result to, or whose value a broadcast
  /// sends. An all_reduce has none.
  std::size_t root = 0;
  /// Must stay alive until the call is complete, and so must the variables and
  /// names in it.
  std::span<const rank_value> values = {};
};

/// A call that waits for other ranks.
struct waiting_call {
  ticket position = 0;              ///< number of the call
  std::string text;                 ///< e.g. "all_reduce of fc_0.w_0@GRAD"
  std::vector<std::size_t> arrived; ///< ranks that have made the call
  /// Ranks that have not. None: the values are being merged.
  std::vector<std::size_t> missing;
  /// When this rank made the call, by `now_ns` (base/clock.hpp).
  std::uint64_t since_ns = 0;
  ///@{
  /// Of a call that no rank is missing from: how far its values have come.
  std::string channel = {}; ///< what carries them, e.g. "gloo"
  std::uint64_t bytes = 0;  ///< of this rank's values
  /// Bytes that this process has sent, received or added for calls, since it
  /// joined. If the number grows, the call goes on.
  std::uint64_t moved = 0;
  /// A rank of the process whose bytes are awaited, or that is to take bytes.
  std::optional<std::size_t> peer = {};
  bool is_receiving = false; ///< bytes of `peer` are awaited
  ///@}
};

/// What a process of a group has told the others about itself.
struct peer_state {
  std::vector<std::size_t> ranks; ///< that it has
  /// Counts up with each `communicator::beat`.
  std::uint64_t beats = 0;
  std::uint64_t steps = 0; ///< steps that have ended there
  /// What it does if no step has ended for a while: "mul#3@cpu:1, step 7: ..."
  std::string doing;

  /// What it says if somebody has paused it. `is_paused`: whether it says so.
  static constexpr std::string_view paused = "is paused";
  bool is_paused() const noexcept { return doing == paused; } ///< See `paused`.
};

/// One rank's end of a group of ranks that merge values. A rank is a device; it
/// knows its own values only. `make_local_group` makes the ends of devices of
/// one process; `join_shm_group`, `join_gloo_group` and `join_mpi_group` make
/// those of devices of several processes.
///
/// **Order.** The calls of a rank are numbered from 1, in the order in which
/// the rank makes them. Calls of the same number belong together: each rank
/// must make each call, with the same kind and root and the same names in the
/// same order. Otherwise all ranks get error(order_mismatch) that says what two
/// of them wanted. A rank may make a call before its earlier ones are complete.
/// Calls that succeed become complete in order.
///
/// **Values.** Dense values are added element by element: float32, or float16
/// and bfloat16 added in float32 and rounded once, or int32 added in 64 bits
/// and wrapped. A NaN of any rank is in the result. A broadcast takes any
/// dtype. All ranks that are not idle give the same shape and dtype. If they
/// give the same permuting layout, the result has it too; otherwise it is
/// plain. Selected rows are concatenated in rank order and keep duplicates; all
/// ranks that are not idle must then give rows. A result may share its memory
/// with those of other ranks; it is then marked by `tensor::share`, so kernels
/// do not write it in place.
///
/// **Determinism.** The result does not depend on the order in which ranks
/// arrive, or on the threads that merge. All kinds of groups add in rank order,
/// ((x0 + x1) + x2) + ..., but for those over several hosts that add inside
/// each host first (`host_group_options::adds`).
///
/// **Errors.** If a call fails, it fails on all ranks. Each rank learns of it
/// when it makes the call or, if it waits, through its completion. The error
/// names the rank that caused it. Results of a failed call are unspecified. The
/// group can be used again: the next call of each rank has the next number.
/// - error(shape_mismatch | dtype_mismatch | invalid_argument): values that do
///   not fit together, no rank has a value, a root that is not in the group or
///   whose value is missing in a broadcast
/// - error(out_of_range): a row number outside of the tensor
/// - error(out_of_memory)
/// - error(order_mismatch): see above
/// - the error of a rank that took part by `fail`, with its code and context
/// - error(peer_failure): a rank has left the group
///
/// **Thread rule.** `start` and `fail`: one thread at a time per rank; ranks
/// are independent of each other. All others: any thread. An end must not be
/// destroyed within a completion.
class communicator {
public:
  communicator(const communicator&) = delete;
  communicator& operator=(const communicator&) = delete;
  /// Leaves the group: a call that is pending completes with an error.
  virtual ~communicator() = default;

  /// Number of this rank, less than `size()`.
  std::size_t rank() const noexcept { return rank_; }
  /// Number of ranks in the group.
  std::size_t size() const noexcept { return size_; }

  /// Makes this rank's next call. It never waits for another rank.
  ///
  /// Returns `done` if work that this rank's device starts from now on can read
  /// the results. Otherwise returns `pending`, and `whole.completed` is called
  /// once, on any thread, maybe within a call of another rank. It must not
  /// block. `position` is the call's number in both cases. If this throws,
  /// `whole` is not called.
  virtual launch_result start(const collective_call& call,
                              completion& whole) = 0;

  /// Makes this rank's next call as a rank that has failed: the call fails on
  /// all other ranks with this error. For this rank it is complete on return.
  virtual void fail(const error& why) = 0;

  /// Fails this rank's calls `first` to `last` that it has made and that wait
  /// for other ranks, as if it had made them by `fail`. Its own completions are
  /// called, too. Does nothing for calls that are complete, or that all ranks
  /// have made.
  virtual void give_up(ticket first, ticket last, const error& why) = 0;

  /// The first calls of this rank that are not complete, in order: at most
  /// `most`, none if all are complete. For whoever watches, who asks again
  /// later and compares positions.
  virtual std::vector<waiting_call> waiting_calls(std::size_t most) const = 0;
  /// The first of them.
  std::optional<waiting_call> waits_for() const;

  ///@{
  /// For a thread that watches whether processes live. `beat` tells the other
  /// processes of the group that this one does, how many steps have ended here,
  /// and what it is doing, of which the first 190 bytes count. One thread of
  /// the process calls it. `peers` returns what all other processes have told;
  /// empty if there are none.
  virtual void beat(std::uint64_t steps, std::string_view doing) {
    (void)steps;
    (void)doing;
  }
  virtual std::vector<peer_state> peers() const { return {}; }
  ///@}

  /// Memory in which values are merged where they lie; values elsewhere are
  /// copied first. Null: any memory of the rank's device will do.
  virtual arena* memory() noexcept { return nullptr; }

  ///@{
  /// For threads that have nothing else to do. A group over several processes
  /// has a thread of its own that others wake, which takes some microseconds.
  /// `progress` does what can be done on the calling thread, and returns true
  /// if there was anything. Between `begin_looking` and
  /// `end_looking` a thread calls `progress` all the time, so the group's own
  /// thread need not be woken. Any thread.
  virtual bool progress() { return false; }
  virtual void begin_looking() {}
  virtual void end_looking() {}
  ///@}

  ///@{
  /// Parcels between processes, for what is no collective. Each process has one
  /// receiver, whatever ranks it has: `open_parcels` is called once, on any
  /// end, and parcels that have come before are kept until then. After
  /// `close_parcels` the receiver is not called any more.
  ///
  /// `send_parcel` sends to the process of rank `to`, which is another one. It
  /// never waits. Content that lies in `memory` is not copied. Parcels of a
  /// rank to a process come in the order in which they were sent, and also if
  /// this rank leaves afterwards. Those to a process that is gone are dropped.
  /// Throws error(out_of_memory); then nothing was sent.
  ///
  /// A group within one process has no parcels: error(invalid_argument).
  virtual void open_parcels(parcel_receiver& to);
  virtual void close_parcels() noexcept {}
  virtual void send_parcel(std::size_t to, parcel p);
  ///@}

  /// Ends this rank's part in the group. All its calls that wait for others,
  /// and all later ones, fail with `why`. The other ranks' calls fail with
  /// error(peer_failure) unless all ranks have made them. Later calls of this
  /// function do nothing.
  virtual void leave(const error& why) = 0;

protected:
  /// @param rank from 0 to `size` - 1
  communicator(std::size_t rank, std::size_t size) : rank_(rank), size_(size) {}

private:
  std::size_t rank_;
  std::size_t size_;
};

/// Who merges the values of a group in one process.
struct local_group_options {
  /// Runs parts of large sums; null: the calling thread does it all. Must
  /// outlive the group.
  part_runner* helpers = nullptr;
  /// Number of parts that a sum is divided into at most.
  std::size_t max_parts = 1;
};

/// Makes a group of devices of this process whose memory the CPU can read and
/// write; result i is the end of rank i. The last rank to make a call merges
/// the values of all ranks, within its `start`. If calls repeat with the same
/// sizes, only the first ones allocate.
///
/// The devices must outlive the group. The ends may be destroyed in any order.
/// Throws error(invalid_argument) if there is no device.
std::vector<std::unique_ptr<communicator>>
make_local_group(std::span<device* const> ranks,
                 const local_group_options& options = {});

} // namespace troupe::comm

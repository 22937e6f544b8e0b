// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/base/spin.hpp>
#include <troupe/comm/communicator.hpp>
#include <troupe/comm/shm/bell_thread.hpp>
#include <troupe/comm/shm/board.hpp>
#include <troupe/comm/shm/meeting.hpp>
#include <troupe/comm/shm/parcel_traffic.hpp>
#include <troupe/comm/shm/plan.hpp>
#include <troupe/comm/shm/process_memory.hpp>
#include <troupe/comm/shm/shared_segment.hpp>
#include <troupe/kernels/memory/arena.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace troupe::comm::shm {

/// One process's part of a group whose ranks are in several processes of a
/// host.
///
/// A call passes through the stages of `call_state`. The rank that makes it
/// last compares all letters. Then the sums are added in parts. Any thread of
/// any process that has nothing else to do takes the next part: the thread that
/// made the call, threads that call `progress`, and the group's own thread,
/// which sleeps in between. All parts write what one thread would write, so
/// results do not depend on who adds them.
///
/// Thread rule: that of `communicator`; `progress` from any thread.
class shm_group {
public:
  /// @param shared holds the `board`, and the rings of parcels behind it
  /// @param members all processes
  /// @param self which of them is this process
  /// @param own the memory of this process
  shm_group(shared_segment shared, std::vector<member> members,
            std::size_t self, std::shared_ptr<process_memory> own);
  shm_group(const shm_group&) = delete;
  shm_group& operator=(const shm_group&) = delete;

  /// Number of ranks of all processes.
  std::size_t size() const noexcept { return segments_.size(); }
  /// Numbers of the ranks of this process.
  std::vector<std::size_t> own_ranks() const;
  /// Memory of this process in which values are merged where they lie.
  arena& memory() noexcept { return memory_; }

  ///@{
  /// The functions of `communicator`, for a rank of this process.
  launch_result start(std::size_t rank, const collective_call& call,
                      completion& whole);
  void fail(std::size_t rank, const error& why);
  void give_up(std::size_t rank, ticket first, ticket last, const error& why);
  std::vector<waiting_call> waiting_calls(std::size_t rank,
                                          std::size_t most) const;
  void beat(std::uint64_t steps, std::string_view doing) noexcept {
    board_->pulses[self_].beat(steps, doing);
  }
  std::vector<peer_state> peers() const;
  void leave(std::size_t rank, const error& why);
  ///@}

  ///@{
  /// Those of `communicator`, for all ranks of this process.
  bool progress();
  void begin_looking() noexcept;
  void end_looking();
  ///@}
  ///@{
  /// The parcels between this process and the others, and where they arrive.
  parcel_traffic& parcels() noexcept { return parcels_; }
  parcel_gate& gate() noexcept { return gate_; }
  ///@}
  /// Returns when no completion of the rank's calls is called any more. The
  /// rank has left.
  void wait_for_end(std::size_t rank) const;

private:
  /// A call of a rank of this process that is not complete.
  struct own_call {
    ticket number = 0;
    completion* whole = nullptr; ///< null: nobody is to be notified
    std::uint64_t since_ns = 0;  ///< when it was made
    /// Why the rank fails the call. Written before `is_given_up` is stored with
    /// release, and never changed.
    std::optional<error> given_up;
    std::atomic<bool> is_given_up{false};
    collective_call call;
    /// What the rank gives, by value: in this process's segment. Keeps the
    /// memory until the call is complete.
    std::vector<tensor> given;
    std::vector<buffer> rows; ///< row numbers of selected rows
    buffer letter;
    /// Bytes of `letter` that were asked for; its capacity may be larger.
    std::size_t letter_room = 0;
    bool is_made = false;   ///< other ranks can see it
    bool is_plain = false;  ///< no value has another layout any more
    bool is_copied = false; ///< the rank has copied its results

    /// Prepares it for another call. Keeps memory that this one can use.
    void reset() noexcept;
  };
  using call_pointer = std::unique_ptr<own_call>;

  /// What a rank of this process knows. One thread at a time works on its
  /// calls (see `advance`) and is the only one that uses what `calls` points
  /// to, the plan and `planned`.
  struct own_rank {
    std::size_t rank = 0;
    mutable spin_flag lock;         // guards the next four
    std::deque<call_pointer> calls; // in order
    call_pointer spare;             // for the next call
    ticket made = 0;
    std::optional<error> left;
    /// Set if a call has been added or given up. Relaxed, as `leaves` below.
    std::atomic<bool> has_news{false};
    /// Set until the others have been told that the rank has left. Relaxed:
    /// `requests` orders it.
    std::atomic<bool> leaves{false};
    std::optional<call_plan> plan;
    ticket planned = 0; // the call that the plan is of
    // Used by `make_all`; kept to reuse their memory.
    std::vector<own_call*> to_make, to_fail;
    /// Requests to work on the calls since nobody does: 0 means that nobody
    /// does. The thread that counts from 0 to 1 works until no request is new.
    /// acq_rel: each such thread sees what the one before it has written.
    std::atomic<std::uint32_t> requests{0};
    /// The slot of the first call, if others can see it; for `progress`.
    /// Stored with release after `is_made`, loaded with acquire.
    std::atomic<call_slot*> awaited{nullptr};
  };

  /// How a call has ended. Its completion is called without locks.
  struct ended_call {
    ticket number = 0; ///< 0: none has ended
    completion* whole = nullptr;
    std::exception_ptr failure;
  };
  static void tell(const ended_call& ended) noexcept;

  own_rank& own(std::size_t rank) const { return *own_of_rank_[rank]; }
  rank_mask everybody() const noexcept;
  call_slot& slot_of(const own_call& c) noexcept {
    return board_->slot_of(c.number);
  }

  // A rank makes a call.
  void stage(std::size_t rank, own_call& c);
  tensor in_segment(const tensor& value, bool is_written);
  void stage_dense(own_call& c, std::size_t i, const tensor& value,
                   letter_value& v);
  void stage_rows(std::size_t rank, own_call& c, const selected_rows& value,
                  letter_value& v);
  void describe(const tensor& value, letter_value& v) const;
  call_pointer new_call(own_rank& of);
  ticket add(own_rank& of, call_pointer c);
  bool make_all(own_rank& of);
  bool make(own_rank& of, own_call& c);
  std::optional<error> find_mismatch(const own_rank& of, const own_call& c,
                                     rank_mask others);

  // A thread works on the calls of a rank.
  bool advance(own_rank& of, ticket asked = 0, ended_call* answer = nullptr);
  bool advance_all();
  own_call* first_call(own_rank& of);
  bool can_go_on(const own_rank& of) const noexcept;
  ended_call end_first(own_rank& of, own_call& c, std::exception_ptr failure);
  bool work_on(own_rank& of, own_call& c, std::exception_ptr& failure,
               bool& moved);
  void settle(own_rank& of, own_call& c);
  void convert(own_rank& of, own_call& c);
  void add_parts(own_rank& of, own_call& c);
  void copy(own_rank& of, own_call& c);
  void begin(call_slot& s, call_state stage, std::uint64_t to_do);
  void end_adding(call_slot& s);
  void end(call_slot& s);
  void note_failure(call_slot& s, const error& why);
  void end_with(call_slot& s, const error& why);
  void fail_call(call_slot& s, const error& why);
  void hand_out(const own_rank& of, own_call& c);
  void finish(const own_rank& of, own_call& c);
  std::optional<error> left_before(ticket number) const;
  const call_plan& plan_of(own_rank& of, const own_call& c);

  // A rank leaves.
  bool tell_leave(own_rank& of);
  bool take_back(const own_rank& of, own_call& c);
  std::exception_ptr end_kept(own_rank& of, own_call& c);

  void describe_traffic(const own_call& c, waiting_call& call) const;
  void ring_others() noexcept;

  shared_segment shared_;
  board* board_;
  std::vector<member> members_;
  std::size_t self_;
  std::vector<const shared_segment*> segments_; // by rank
  std::shared_ptr<process_memory> own_memory_;
  arena& memory_;
  std::vector<std::unique_ptr<own_rank>> own_;
  std::vector<own_rank*> own_of_rank_; // null for ranks of other processes
  parcel_gate gate_;
  parcel_traffic parcels_;
  /// The news on which a thread that looks has last worked.
  std::atomic<std::uint32_t> seen_news_{0};
  std::optional<bell_thread> thread_; // uses all members above
};

} // namespace troupe::comm::shm

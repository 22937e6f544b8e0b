// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/comm/communicator.hpp>
#include <troupe/comm/engine/engine.hpp>
#include <troupe/comm/engine/exchange.hpp>
#include <troupe/comm/engine/join.hpp>
#include <troupe/comm/engine/message.hpp>
#include <troupe/comm/engine/nearby_parcels.hpp>
#include <troupe/comm/engine/neighbours.hpp>
#include <troupe/comm/engine/staged_call.hpp>
#include <troupe/comm/letters_plan.hpp>
#include <troupe/kernels/memory/arena.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

namespace troupe::comm {

/// One process's part of a group whose ranks are in several processes, which an
/// engine connects.
///
/// Each rank sends all processes one letter per call: what it gives, or that it
/// has failed. So all processes know the same of a call, and it ends in the
/// same way for all ranks: it fails if any letter says so or does not fit, and
/// otherwise the values are merged. If all values are small, they are in the
/// letters, and each process adds them itself. Otherwise the group's own thread
/// exchanges them, one call after the other (see `exchange`).
///
/// A rank that gives up a call, or leaves, cannot take its letter back. It asks
/// the others: each process lets those of its ranks that have not made the call
/// fail it. If there is none, all ranks have made the call, and it goes on. A
/// rank that leaves waits half a second for it, then the process stops its
/// engine: another process may be stopped.
///
/// **Errors.** If a process is lost, all calls that need it fail with
/// error(peer_failure) that names it. If a process has not enough memory for
/// results, it leaves the group, because others may have theirs already.
///
/// **Parcels** between processes of the same host go through shared memory,
/// others are messages.
///
/// **Signs of life.** A beat is a message to all processes. Those of a process
/// that is lost or stopped just stop. The connections of a stopped process
/// stay: it is not lost, and whoever watches beats must notice it.
///
/// Thread rule: that of `communicator`.
class engine_group final : public engine_events {
public:
  /// Meets the other processes. Throws what `join_shm_group` lists.
  engine_group(std::unique_ptr<engine> by, const engine_group_options& options);
  ~engine_group() override;
  engine_group(const engine_group&) = delete;
  engine_group& operator=(const engine_group&) = delete;

  /// Number of ranks of all processes.
  std::size_t size() const noexcept { return size_; }
  /// Numbers of the ranks of this process, in order.
  const std::vector<std::size_t>& own_ranks() const noexcept { return own_; }

  ///@{
  /// The functions of `communicator`, for a rank of this process.
  launch_result start(std::size_t rank, const collective_call& call,
                      completion& whole);
  void fail(std::size_t rank, const error& why);
  void give_up(std::size_t rank, ticket first, ticket last, const error& why);
  std::vector<waiting_call> waiting_calls(std::size_t rank,
                                          std::size_t most) const;
  void leave(std::size_t rank, const error& why);
  void beat(std::uint64_t steps, std::string_view doing);
  std::vector<peer_state> peers() const;
  bool progress();
  void begin_looking();
  void end_looking();
  void open_parcels(parcel_receiver& to) { parcels_.open(to); }
  void close_parcels() noexcept { parcels_.close(); }
  void send_parcel(std::size_t rank, std::size_t to, parcel p);
  ///@}
  /// Memory of this process that others of its host read; null if there is
  /// none.
  arena* memory() noexcept { return nearby_ ? &memory_ : nullptr; }
  /// Returns when no completion of the rank's calls is called any more. The
  /// rank has left.
  void wait_for_end(std::size_t rank);

  void arrived(std::size_t from, std::span<const std::byte> message) override;
  void lost(std::size_t process, const error& why) override;

private:
  /// One rank's part in a call.
  struct visit {
    bool came = false;           ///< there is a letter
    bool is_good = false;        ///< which does not say that it has failed
    bool is_made = false;        ///< a rank of this process has made the call
    completion* whole = nullptr; ///< null: nobody is to be notified
    std::uint64_t since_ns = 0;  ///< when it made the call; of ranks that wait
    collective_call call;        ///< of ranks that wait
    staged_call staged;          ///< of other processes: only the message
    letter_view letter;
    std::uint64_t hash = 0;
  };
  /// A call, from its first letter to the last.
  struct meeting {
    ticket position = 0;
    std::size_t came = 0;
    bool is_merged = false;
    std::vector<visit> ranks;
    std::optional<error> failure; ///< the first one
  };
  using meeting_pointer = std::unique_ptr<meeting>;
  /// The end of a rank's call. Its completion is called without the lock.
  struct notice {
    std::size_t rank;
    ticket position;
    completion* whole;
    std::exception_ptr failure;
  };
  using notices = std::vector<notice>;
  /// The call that a thread makes: its end is an answer, not a completion.
  struct asked_call {
    std::size_t rank;
    ticket position;
    bool has_ended = false;
    std::exception_ptr failure = nullptr;
  };
  using lock = std::unique_lock<std::mutex>;

  // Meeting and parting.
  void meet(const engine_group_options& options);
  void wait_for_hellos(const engine_group_options& options);
  void check_hellos() const;
  void meet_neighbours(const engine_group_options& options);
  void begin(const engine_group_options& options);
  void part() noexcept;
  bool is_silent(std::size_t process) const;
  bool has_unfinished_calls() const;
  void send(std::size_t to, std::span<const std::byte> message);
  void send_all(std::span<const std::byte> message);

  // Calls. All need the lock.
  bool is_own(std::size_t rank) const noexcept;
  bool has_waiting_call(std::size_t rank) const;
  void describe_traffic(const visit& own, waiting_call& call) const;
  meeting& meeting_at(ticket position);
  meeting* find(ticket position) noexcept;
  void open(meeting& m, ticket position);
  void retire();
  void come(meeting& m, std::size_t rank, notices& to);
  void come_failed(meeting& m, std::size_t rank, const error& why, notices& to);
  void fail_meeting(meeting& m, const error& why, notices& to);
  void fail_own(meeting& m, const error& why, notices& to);
  void fail_unmade(const error& why, notices& to);
  void check_alike(meeting& m, std::size_t rank, notices& to);
  void end_rank(std::size_t rank, ticket last, const error& why, notices& to);
  void end_ranks(std::size_t process, const error& why, notices& to);
  void handle(std::size_t from, std::span<const std::byte> message,
              notices& to);
  void take_letter(const message_head& head, std::span<const std::byte> message,
                   notices& to);
  void take_beat(std::size_t from, const message_head& head,
                 std::span<const std::byte> message);
  void lose(std::size_t process, const error& why, notices& to);
  void post_parcel(std::size_t rank, std::size_t to, const parcel& p);
  void pass_on(std::span<const std::byte> parcel);
  void require_rank_of(std::size_t process, const message_head& head) const;

  // Merging.
  void advance(bool may_exchange, asked_call* asked = nullptr);
  bool needs_exchange(const meeting& m) const;
  std::exception_ptr merge(meeting& m);
  void merge_values(meeting& m);
  void hand_out_results(meeting& m);
  void hand_out_result(meeting& m, std::size_t i, merged_value& result);
  std::exception_ptr break_off(const error& why);
  void serve();
  void tell(lock& held, const notices& all, asked_call* asked = nullptr);

  std::unique_ptr<engine> engine_;
  std::vector<std::size_t> own_;
  std::size_t size_ = 0;
  std::size_t letter_bytes_;
  std::shared_ptr<process_memory> own_memory_; // null: memory of the host
  arena host_memory_{make_host_memory_source()};
  arena& memory_;
  /// The processes of each host; empty if values are not added by host.
  std::vector<std::vector<std::size_t>> hosts_;
  std::unique_ptr<neighbours> nearby_; // null: no other process on this host
  parcel_gate parcels_;
  std::optional<nearby_parcels> nearby_parcels_; // if there is `nearby_`

  mutable std::mutex mutex_;      // guards all that follow
  std::condition_variable work_;  // for the group's thread
  std::condition_variable ended_; // something that somebody may wait for
  hello_message own_hello_;
  std::vector<std::optional<hello_message>> hellos_; // by process
  std::vector<std::optional<error>> lost_;           // by process
  std::vector<char> is_gone_, has_answered_;         // by process: to `bye`
  std::vector<peer_state> states_;                   // by process
  /// By process: when its last beat came, if any did.
  std::vector<std::optional<std::chrono::steady_clock::time_point>> last_beat_;
  bool has_met_ = false;
  /// Messages that came before this process had met all others.
  std::vector<std::pair<std::size_t, message_bytes>> early_;

  /// Call n is at n - first_; null if nothing is known of it yet.
  std::deque<meeting_pointer> meetings_;
  ticket first_ = 1;
  std::vector<meeting_pointer> spare_;
  std::vector<ticket> made_;               // by rank: number of its last call
  std::vector<std::optional<error>> left_; // by rank: for the other ranks
  std::vector<std::optional<error>> why_;  // by rank: for the rank itself
  std::vector<ticket> last_;               // by rank that has left
  std::size_t first_left_ = 0; // of the ranks that have left, to be named
  std::deque<meeting*> ready_; // to be merged, in order
  bool is_merging_ = false;
  std::size_t telling_ = 0;   // threads that call completions
  std::optional<error> dead_; // why nothing can be exchanged any more
  bool ends_ = false;

  // Used by the thread that merges.
  std::optional<letters_plan> plan_;
  std::optional<exchange> exchange_;
  std::vector<letter_view> letters_;
  std::vector<own_values> own_values_;
  std::vector<merged_value> results_;

  std::thread thread_; // exchanges values
};

/// Makes a group of the processes that the engine connects; result i is the end
/// of this process's i-th rank. Throws what `join_shm_group` lists.
std::vector<std::unique_ptr<communicator>>
join_engine_group(std::unique_ptr<engine> by,
                  const engine_group_options& options);

} // namespace troupe::comm

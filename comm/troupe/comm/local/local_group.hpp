// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/comm/communicator.hpp>
#include <troupe/comm/local/merger.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::comm::local {

/// What the ranks of one process share: the calls that some ranks have made and
/// others have not. The last rank that makes a call merges for all, or starts
/// the merge.
///
/// Thread rule: that of `communicator`.
class local_group {
public:
  explicit local_group(std::unique_ptr<merger> merges);

  std::size_t size() const noexcept { return merges_->size(); }

  ///@{
  /// The functions of `communicator`, for one rank.
  launch_result start(std::size_t rank, const collective_call& call,
                      completion& whole);
  void fail(std::size_t rank, const error& why);
  void give_up(std::size_t rank, ticket first, ticket last, const error& why);
  std::vector<waiting_call> waiting_calls(std::size_t rank,
                                          std::size_t most) const;
  void leave(std::size_t rank, const error& why);
  ///@}

private:
  /// One rank's part in a call.
  struct visit {
    bool came = false;
    completion* whole = nullptr; ///< null: the rank does not wait
    std::uint64_t since_ns = 0;  ///< when it made the call
    rank_part part;
  };

  struct meeting;
  /// What a merge that is pending calls.
  struct merge_end final : completion {
    void completed(std::exception_ptr failure) noexcept override {
      of->merged(*at, std::move(failure));
    }
    local_group* of = nullptr;
    meeting* at = nullptr;
  };

  /// A call, from the first rank that makes it to the last.
  struct meeting {
    ticket position = 0; ///< 0: not in use
    bool ended = false;
    std::size_t came = 0;
    std::vector<visit> ranks;
    /// The first failure. Ranks that waited were notified of it; ranks that
    /// arrive later get it at once.
    std::optional<error> failure;
    merge_end whole;
  };

  /// Completions of failed calls. They are called after the lock is released.
  using notices = std::vector<std::pair<completion*, std::exception_ptr>>;
  static void tell(const notices& all) noexcept;

  meeting& join(std::size_t rank);
  void open(meeting& m, ticket position);
  void end(meeting& m) noexcept;
  meeting& meeting_at(ticket position) const noexcept {
    return *meetings_[position % meetings_.size()];
  }
  void make_room();
  bool is_complete(const meeting& m) const noexcept { return m.came == size(); }
  void check_alike(meeting& m, std::size_t rank, const collective_call& call,
                   notices& to);
  void fail_meeting(meeting& m, const error& why, notices& to);
  void leave_meeting(meeting& m, std::size_t rank, notices& to);
  launch_result finish(meeting& m, std::size_t rank);
  launch_status merge_all(meeting& m);
  void merged(meeting& m, std::exception_ptr failure) noexcept;

  mutable std::mutex mutex_; // guards all members below but the last ones
  /// Call n is at n modulo the size. Calls from `ended_` + 1 on are in use.
  /// Each has memory of its own, so that its address stays the same.
  std::vector<std::unique_ptr<meeting>> meetings_;
  ticket ended_ = 0; // this call and all earlier ones have ended on all ranks
  std::vector<ticket> made_;               // by rank: number of its last call
  std::vector<std::optional<error>> left_; // by rank: why it has left

  // The last rank to make a call uses these without the lock. Its next call is
  // part of every later call, so no two calls use them at a time.
  std::unique_ptr<merger> merges_;
  std::vector<rank_part> parts_;     // of the call, by rank
  std::vector<completion*> waiting_; // of the ranks that wait for the call
};

/// The ends of a group that this merger merges for; result i is that of rank i.
std::vector<std::unique_ptr<communicator>>
make_ends(std::unique_ptr<merger> merges);

} // namespace troupe::comm::local

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/base/files/descriptor.hpp>
#include <troupe/comm/job_epoch.hpp>
#include <troupe/comm/rank_environment.hpp>
#include <troupe/training/data/batch_share.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe::apps {

class rank_rendezvous;

/// How the ranks of a job exchange values.
struct rank_options {
  std::string engine = "auto";
  std::string data_network; ///< "trusted", or empty: not given
  /// By which ranks of other hosts reach this one. Empty: what the environment
  /// says.
  std::string interface = {};
};

/// This process's part in a job that a launcher started: one of its ranks. A
/// process that no launcher started is the only one.
///
/// The ranks of a job are the processes of one run. All of them are given the
/// same command, and each has the devices that `--devices` names.
///
/// In an *elastic* job, ranks may end and others begin. The epochs in between
/// are numbered (comm/job_epoch.hpp) by the launcher, or by one of the ranks if
/// the launcher does not do so (`rank_rendezvous`). In each epoch a process can
/// have another rank, and the ranks make a new run.
///
/// Thread rule: one thread; `require_epoch` and the numbers also from threads
/// that wait for others to join.
class rank_part {
public:
  /// What the environment says (`comm::find_rank`). Throws what that throws.
  /// Waits for the first epoch of an elastic job that has this process: throws
  /// error(peer_failure) if there is none for two minutes or the job has done
  /// all steps, error(bad_file), and what `rank_rendezvous` throws.
  rank_part();
  explicit rank_part(std::optional<comm::rank_environment> found);
  /// Leaves the job. Removes the folder in which the ranks have met, if this
  /// made it.
  ~rank_part();
  rank_part(const rank_part&) = delete;
  rank_part& operator=(const rank_part&) = delete;

  /// True if a launcher has started this process, be it as the only rank.
  bool is_of_job() const noexcept { return found_.has_value(); }
  std::size_t rank() const noexcept { return found_ ? found_->rank : 0; }
  std::size_t size() const noexcept { return found_ ? found_->size : 1; }
  bool is_first() const noexcept { return rank() == 0; }
  bool has_others() const noexcept { return size() > 1; }
  /// Equal on all ranks of the job, and different from other jobs. Empty if no
  /// launcher has started this process.
  std::string job() const;
  bool is_on_several_hosts() const noexcept {
    return found_ && found_->local_size != found_->size;
  }

  ///@{
  /// For elastic jobs. The epoch is 0 in others.
  std::uint64_t epoch() const noexcept { return epoch_; }
  bool is_elastic() const noexcept { return found_ && found_->member; }
  /// True if the process was not there from the start.
  bool is_late() const noexcept { return first_epoch_ > 1; }
  /// True if the job has done steps, but none of the living ranks was there
  /// then.
  bool may_have_lost_all() const noexcept { return are_all_new_; }
  /// Tells who keeps the rendezvous that the epoch makes progress.
  void tell_step_done();
  /// Tells that this rank has done all steps: nobody can join any more.
  void tell_all_done();
  /// Throws error(peer_failure) if the epoch has ended, for all or for rank 0.
  /// Does nothing in other jobs.
  void require_epoch() const;
  /// Tells who keeps the rendezvous that the epoch has ended for this rank, and
  /// waits for the next one. Throws error(cancelled) if `stops` returns true,
  /// and error(peer_failure) if there is none for a long time.
  void enter_next_epoch(const std::function<bool()>& stops);
  ///@}

  /// Replaces the network interface that the environment names. Does nothing if
  /// the name is empty.
  void use_interface(const std::string& name);
  /// The folder in which the ranks of the epoch meet. There must be others, all
  /// on this host.
  const std::string& meeting_folder();
  /// How the ranks meet if they are on several hosts: HOST of rank 0, its port,
  /// the credentials of this rank, and its network interface if one was named.
  /// Throws error(invalid_argument) if one of the first three is missing.
  const comm::rank_environment& meeting_on_network() const;

  /// Number of workers if `--threads` is not given; 0 for one per core. The
  /// ranks of a host share its cores, unless the launcher has done so.
  int default_threads() const;

  /// Turns the options of a run on this rank's devices into those of the run of
  /// all ranks. Does nothing if there are no others. Throws
  /// error(invalid_argument) if the ranks are on several hosts and have not
  /// been told how they meet.
  void spread(executor_options& options, const rank_options& given);
  /// "rank 1 waits for the other ranks; rank 0 is to be at node-1, port 20001".
  std::string text_of_waiting() const;
  /// The samples of this rank.
  /// @param own_devices number of devices of each rank
  batch_share share_of(std::size_t own_devices) const;

private:
  void meet_on_host(node_options& nodes);
  void meet_over_network(node_options& nodes, const rank_options& given) const;
  std::string text_of_gap(bool has_too_few) const;
  std::string text_without_epoch(bool has_too_few) const;
  std::string limits() const;
  void take_place(const comm::job_epoch& epoch, std::size_t rank);
  void enter_epoch(std::uint64_t after, const std::function<bool()>& stops);

  std::optional<comm::rank_environment> found_;
  std::uint64_t epoch_ = 0, first_epoch_ = 0; // of an elastic job
  bool are_all_new_ = false;
  bool has_told_step_ = false; // of this epoch
  std::string folder_;         // empty: not made yet
  bool made_folder_ = false;
  descriptor holds_folder_;                     // of a launcher
  std::unique_ptr<rank_rendezvous> rendezvous_; // if no launcher keeps one
};

} // namespace troupe::apps

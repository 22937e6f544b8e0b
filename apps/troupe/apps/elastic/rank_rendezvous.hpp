// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/elastic/job_processes.hpp>
#include <troupe/apps/elastic/rendezvous_duty.hpp>
#include <troupe/apps/owned_folder.hpp>
#include <troupe/base/files/descriptor.hpp>
#include <troupe/comm/rank_environment.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace troupe::apps {

/// Which process of a host does what only one may do in the folder of an
/// elastic job whose launcher keeps no rendezvous (rendezvous_duty): the lowest
/// living rank of the host. If it ends, the lowest of those that are left takes
/// that over.
///
/// Who does it holds a lock on a file in the folder, which the system gives to
/// one process at a time. So no two processes of a host ever do.
///
/// Thread rule: one thread.
class kept_rendezvous {
public:
  using clock = std::chrono::steady_clock;
  using begin_duty = std::function<std::unique_ptr<rendezvous_duty>()>;

  /// @param begin called each time that this process takes the lock
  /// Folder and processes must outlive the object.
  kept_rendezvous(const std::string& folder, const job_processes& processes,
                  begin_duty begin);

  /// True if this process has the lock.
  bool is_kept_here() const noexcept { return lock_.get() >= 0; }
  /// True if other processes would miss something if this one ended now.
  bool is_missed() const { return duty_ && duty_->is_missed(); }
  /// Takes the lock if this process is to have it, and does its duty then.
  /// Kills who has it and hangs. Throws what the duty throws; somebody else can
  /// take it over then.
  void look(clock::time_point now);

private:
  std::vector<std::uint64_t> heirs() const;
  bool is_first_heir() const;
  bool is_kept_elsewhere() const;
  void kill_keeper_that_hangs(clock::time_point now);
  bool take_lock();

  const std::string& folder_;
  const job_processes& processes_;
  begin_duty begin_;
  descriptor lock_;
  std::unique_ptr<rendezvous_duty> duty_; ///< null: another process has it
  clock::time_point last_look_;
  clock::duration silence_{}; ///< of the process that has the lock
  std::filesystem::file_time_type last_sign_{};
};

/// This process's part in such a job: its number, and a thread that looks after
/// the rendezvous.
///
/// Thread rule: one thread.
class rank_rendezvous {
public:
  /// Enters the job, in a folder of its own below the one that all runs of this
  /// user share. Throws error(io_failure), and error(invalid_argument) if
  /// others have access to it. For ranks on several hosts: error(bad_file) and
  /// error(invalid_argument) if the credentials cannot be used, and what
  /// `find_host` throws.
  /// @param found has `least` and `most`
  explicit rank_rendezvous(const comm::rank_environment& found);
  /// Leaves the job. Removes the folder if nobody else is in it. Waits some
  /// seconds for other hosts if all steps are done and they learn from this
  /// process that they need not wait for it.
  ~rank_rendezvous();
  rank_rendezvous(const rank_rendezvous&) = delete;
  rank_rendezvous& operator=(const rank_rendezvous&) = delete;

  const std::string& folder() const noexcept { return folder_.path(); }
  std::uint64_t member() const noexcept { return processes_.own(); }

private:
  bool is_to_stay(std::chrono::steady_clock::time_point end) const;
  void serve();

  owned_folder folder_;
  job_processes processes_;
  std::atomic<bool> ends_ = false;
  kept_rendezvous kept_;
  std::thread thread_; // uses all members above
};

} // namespace troupe::apps

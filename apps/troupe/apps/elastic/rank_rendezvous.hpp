// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/elastic/job_members.hpp>
#include <troupe/apps/elastic/job_processes.hpp>
#include <troupe/apps/owned_folder.hpp>
#include <troupe/base/files/descriptor.hpp>
#include <troupe/comm/rank_environment.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace troupe::apps {

/// The rendezvous of an elastic job whose launcher keeps none. The lowest
/// living rank keeps it. If that rank ends, the lowest of those that are left
/// takes it over.
///
/// Who keeps it holds a lock on a file in the folder of the job, which the
/// system gives to one process at a time. So no two ranks ever write epochs.
///
/// Thread rule: one thread.
class kept_rendezvous {
public:
  using clock = std::chrono::steady_clock;

  /// @param size number of processes with which the job begins
  /// @param most as many may take part
  /// All arguments must outlive the object.
  kept_rendezvous(const std::string& folder, const job_processes& processes,
                  std::size_t size, std::size_t most);

  /// True if this process keeps it.
  bool is_kept_here() const noexcept { return lock_.get() >= 0; }
  /// Takes it over if this process is to keep it. Then looks who has ended or
  /// come, and begins an epoch if one is due. Kills processes that hang. Throws
  /// error(io_failure | bad_file); somebody else can take it over then.
  void look(clock::time_point now);

private:
  std::vector<std::uint64_t> heirs() const;
  bool is_first_heir() const;
  bool is_kept_elsewhere() const;
  void kill_keeper_that_hangs(clock::time_point now);
  bool take_lock();
  void begin();
  void keep(clock::time_point now);

  const std::string& folder_;
  const job_processes& processes_;
  std::size_t size_, most_;
  descriptor lock_; ///< this process keeps the rendezvous
  std::optional<job_members> members_;
  clock::time_point last_look_;
  clock::duration waited_{}; ///< for an epoch, while another one keeps it
};

/// This process's part in such a job: its number, and a thread that looks after
/// the rendezvous.
///
/// Thread rule: one thread.
class rank_rendezvous {
public:
  /// Enters the job, in a folder of its own below the one that all runs of this
  /// user share. Throws error(io_failure), and error(invalid_argument) if
  /// others have access to it.
  /// @param found has `least` and `most`
  explicit rank_rendezvous(const comm::rank_environment& found);
  /// Leaves the job. Removes the folder if nobody else is in it.
  ~rank_rendezvous();
  rank_rendezvous(const rank_rendezvous&) = delete;
  rank_rendezvous& operator=(const rank_rendezvous&) = delete;

  const std::string& folder() const noexcept { return folder_.path(); }
  std::uint64_t member() const noexcept { return processes_.own(); }

private:
  void serve();

  owned_folder folder_;
  job_processes processes_;
  kept_rendezvous kept_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_; // uses all members above
};

} // namespace troupe::apps

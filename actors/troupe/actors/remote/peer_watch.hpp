// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>
#include <troupe/comm/communicator.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace troupe::actors {

/// Watches the other processes of a run, on a thread of its own. It tells
/// apart:
/// - *lost*: a process that has not given a sign of life for the silence limit.
///   It is stopped, or gone without anyone having noticed.
/// - *slow*: a process that lives, and for which a collective waits longer than
///   the silence limit. This is only noticed.
/// - *stuck*: the same for longer than the stall limit. Not as long as somebody
///   has paused the process.
///
/// While the process itself is stopped, or the machine sleeps, no time passes.
class peer_watch {
public:
  using milliseconds = std::chrono::milliseconds;

  struct parts {
    /// This process's ranks; not empty. They outlive the watch.
    std::vector<comm::communicator*> ends;
    milliseconds silence_limit{5000};
    milliseconds stall_limit{600'000};
    /// By rank: its process.
    std::vector<std::size_t> process_of;
    /// Steps that have ended here.
    std::function<std::uint64_t()> steps;
    /// Whether somebody holds up the steps of this process.
    std::function<bool()> is_paused;
    /// What this process does, in a few words. Called if no step has ended for
    /// a while, or if it is paused.
    std::function<std::string()> doing;
    /// Called if a process is lost or stuck. True: the run ends, and so does
    /// the watch. False: the process had left, and gives no signs for this
    /// reason.
    std::function<bool(std::size_t process, const std::string& why)> lost;
    /// Called if a process is slow; once per collective that waits. May be
    /// empty.
    std::function<void(std::size_t process, const std::string& what)> noticed;
  };

  /// All functions are called on the watch's thread.
  explicit peer_watch(parts p);
  /// Afterwards nothing is called any more.
  ~peer_watch();
  peer_watch(const peer_watch&) = delete;
  peer_watch& operator=(const peer_watch&) = delete;

private:
  using clock = std::chrono::steady_clock;

  /// When something was last seen to change.
  template <class T>
  struct last_change {
    std::optional<T> value;
    clock::time_point at;

    /// Returns how long the value has been the same.
    clock::duration see(const T& now_value, clock::time_point now) {
      if (value != now_value) {
        value = now_value;
        at = now;
      }
      return now - at;
    }
  };
  struct waiting_state {
    last_change<ticket> call;
    bool is_noticed = false;
  };

  void watch();
  void skip_own_sleep(clock::time_point now);
  void beat(clock::time_point now);
  bool look_at_peers(clock::time_point now);
  bool look_at_call(std::size_t end, clock::time_point now);
  std::size_t culprit(const comm::waiting_call& call) const;
  std::string text_of(const comm::waiting_call& call, std::size_t process,
                      clock::duration time) const;
  const comm::peer_state* state_of(std::size_t process) const;

  parts parts_;
  milliseconds interval_;
  clock::time_point last_look_;
  last_change<std::uint64_t> own_steps_;
  std::vector<comm::peer_state> peers_;                     // as last seen
  std::map<std::size_t, last_change<std::uint64_t>> beats_; // by process
  std::vector<waiting_state> waits_;                        // by end
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false; // guarded by the mutex
  std::thread thread_;
};

} // namespace troupe::actors

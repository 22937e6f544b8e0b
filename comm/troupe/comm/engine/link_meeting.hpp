// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/files/descriptor.hpp>
#include <troupe/base/net/secret.hpp>
#include <troupe/comm/engine/key_store.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace troupe::comm {

/// Which process meets which others, and how long it waits.
struct link_meeting_options {
  std::size_t process = 0;   ///< number of this process, less than `processes`
  std::size_t processes = 1; ///< number of all
  /// Address or host name of this process on the network.
  std::string address;
  std::chrono::steady_clock::time_point deadline;
  /// Called now and then while waiting, if set. What it throws ends the wait.
  std::function<void()> check = {};
};

/// How the processes of a group connect to each other over TCP. Each publishes
/// where it listens, and a secret. It calls the processes before it, and is
/// called by those after it. Caller and called show each other the secret of
/// the other one: whoever cannot see the store cannot take part. A caller that
/// shows something else, or nothing for two seconds, is dropped.
///
/// Thread rule: one thread at a time.
class link_meeting {
public:
  /// Listens at a port that the system chooses, and publishes it. The options
  /// and the store must outlive this object. Throws error(io_failure) if the
  /// address cannot be used, and what the store throws.
  link_meeting(const link_meeting_options& options, key_store& store);

  /// Waits for all other processes. The result has the connection to process p
  /// at p, and none for this process; they do not block. Throws
  /// error(peer_failure) that names the processes that do not come until the
  /// deadline, or cannot be reached, and what the store and the check throw.
  std::vector<descriptor> connect_all();

private:
  struct place;    // where a process listens, and its secret
  struct greeting; // what is shown
  struct party;    // a connection whose other end has not shown it yet
  class calls;     // all of them

  const link_meeting_options& options_;
  key_store& store_;
  secret secret_ = random_secret();
  descriptor listening_;
};

} // namespace troupe::comm

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/files/descriptor.hpp>
#include <troupe/comm/engine/engine.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace troupe::comm {

/// Carries the messages of an engine over TCP: a connection per other process,
/// which one thread reads. A message wakes this thread, which tells the events:
/// no other thread lies between the socket and the receiver.
///
/// Thread rule: `post` on any thread; the others on one at a time.
class message_links {
public:
  /// Begins to receive.
  /// @param sockets the connection to process p at p, none for this process;
  ///   they must not block
  /// @param to outlives this object. Its `lost` is called once for a process
  ///   whose connection has ended, unless the destructor was called before.
  /// Throws error(kernel_failure) if there is no thread, error(io_failure) if
  /// there are too many files.
  message_links(std::vector<descriptor> sockets, engine_events& to);
  /// Ends the connections. Messages that were not sent yet are lost.
  ~message_links();
  message_links(const message_links&) = delete;
  message_links& operator=(const message_links&) = delete;

  /// Sends a copy of the message. Never waits: what the connection does not
  /// take at once is sent later. Messages for a lost process are dropped.
  void post(std::size_t to, std::span<const std::byte> message);

private:
  class link;

  void serve();
  void receive(std::size_t from);

  engine_events& events_;
  std::vector<std::unique_ptr<link>> links_; // by process
  descriptor ready_;                         // which sockets can be used
  descriptor ends_;                          // told by the destructor
  std::thread thread_;
};

} // namespace troupe::comm

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace troupe::comm {

/// What an engine tells its owner. Thread rule: any thread, one at a time per
/// process. The functions must not wait for other processes.
class engine_events {
public:
  virtual ~engine_events() = default;
  /// A message of another process. Messages of one process come in the order in
  /// which it posted them.
  virtual void arrived(std::size_t from,
                       std::span<const std::byte> message) = 0;
  /// Nothing comes from this process any more: it has ended or closed its
  /// engine.
  virtual void lost(std::size_t process, const error& why) = 0;
};

/// A send or a receive that was started. It can be destroyed before it has
/// ended only after `engine::close`.
class transfer {
public:
  virtual ~transfer() = default;

  // Set by who has started it.
  std::size_t partner = 0; ///< the other process
  std::size_t bytes = 0;
  bool is_receive = false;
};

/// Sends and receives bytes between processes: Gloo, MPI, or memory in tests.
///
/// There are two ways. *Messages* are small and can come at any time: they are
/// posted, and the other side learns of them through its events. *Transfers*
/// are large and expected: they go from memory to memory, and somebody waits
/// for their end. A send meets the receive of the same two processes and the
/// same tag; those of one tag meet in the order in which they were started.
///
/// Thread rule: `post`, `stop`, `progress` and looking from any thread;
/// transfers from one thread at a time.
///
/// Errors: functions throw error(peer_failure) if the process is lost or the
/// engine was stopped.
class engine {
public:
  virtual ~engine() = default;

  /// Number of this process, less than `processes()`.
  std::size_t process() const noexcept { return process_; }
  /// What it is called in messages to people.
  virtual std::string_view name() const noexcept { return "memory"; }
  /// Number of all processes.
  std::size_t processes() const noexcept { return processes_; }

  /// Begins to receive messages. Called once, before all functions below. `to`
  /// must stay alive until `close` returns.
  virtual void open(engine_events& to) = 0;
  /// Sends a copy of the message. Never waits for the other process. Messages
  /// for a lost process are dropped.
  virtual void post(std::size_t to, std::span<const std::byte> message) = 0;

  ///@{
  /// Starts a transfer. The bytes must stay alive until it has ended, or
  /// `close` has returned. A receive has as many bytes as its send.
  virtual std::unique_ptr<transfer> send(std::size_t to, std::uint32_t tag,
                                         std::span<const std::byte> bytes) = 0;
  virtual std::unique_ptr<transfer> receive(std::size_t from, std::uint32_t tag,
                                            std::span<std::byte> bytes) = 0;
  ///@}
  /// Returns when the transfer has ended.
  virtual void wait(transfer& started) = 0;

  /// Makes all waits end with error(peer_failure), now and later. Messages
  /// still come and go.
  virtual void stop() noexcept = 0;
  /// Ends everything. When it returns, the engine has no threads, sockets or
  /// files any more and calls no events. Must not be called by an event.
  virtual void close() noexcept = 0;

  ///@{
  /// As in `communicator`.
  virtual bool progress() { return false; }
  virtual void begin_looking() {}
  virtual void end_looking() {}
  ///@}

protected:
  engine(std::size_t process, std::size_t processes)
    : process_(process), processes_(processes) {}

private:
  std::size_t process_;
  std::size_t processes_;
};

} // namespace troupe::comm

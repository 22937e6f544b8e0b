// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/remote/loopback.hpp>
#include <troupe/base/descriptor.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace troupe::actors {

/// The local port and the remote port of a socket; 0 if there is none.
std::uint16_t port_of(int fd);
std::uint16_t port_of_peer(int fd);

/// The secret of a run, known only to its processes. The connecting process
/// sends `knock`, the listening process replies with `answer`. Both are random
/// and are stored in a file that only its owner can read.
struct run_pass {
  using token = std::array<std::byte, 32>;
  token knock{};
  token answer{};

  static run_pass random();
};

/// The folder for files of runs: `folder` or, if that is empty,
/// /tmp/troupe-UID, which is created if necessary. Throws
/// error(invalid_argument) if anyone but the owner has access to it.
std::string run_folder(const std::string& folder);
/// Path of the pass file of the run that listens on `port`, in that folder.
std::string pass_path(const std::string& folder, std::uint16_t port);
/// The same for the socket at which the processes of the run exchange memory.
std::string group_path(const std::string& folder, std::uint16_t port);

/// Admits connections to a loopback port that send the pass of the run.
///
/// Data from strangers gets no further than this class: a socket is passed on
/// only after the 32 correct bytes have arrived. A connection that has not sent
/// them after two seconds is closed. If there are too many connections, the
/// oldest is closed.
class gate {
public:
  /// Listens and writes the file of the pass.
  /// @param port 0: any
  /// @param admit takes each admitted socket and the gate's port; called on the
  ///   gate's thread
  ///
  /// Throws error(peer_failure) if it cannot listen there, and error(io_failure
  /// | invalid_argument) if it cannot write the pass.
  gate(const std::string& host, std::uint16_t port, const std::string& folder,
       std::function<void(descriptor, std::uint16_t port)> admit);
  /// Stops listening and removes the file.
  ~gate();
  gate(const gate&) = delete;
  gate& operator=(const gate&) = delete;

  std::uint16_t port() const noexcept { return port_; }

private:
  void serve();

  std::function<void(descriptor, std::uint16_t port)> admit_;
  descriptor listening_;
  descriptor wake_, woken_; // a pipe: a byte in it ends the gate's thread
  std::uint16_t port_ = 0;
  std::string path_;
  run_pass pass_;
  std::thread thread_;
};

/// The port of the run whose pass is in `folder`, where there is no other:
/// waits until a gate listens there. Throws error(peer_failure) if there is
/// none until `deadline`, and error(invalid_argument | io_failure) for a folder
/// that is not this user's own.
/// @param check called now and then, if set; what it throws ends the wait
std::uint16_t find_run(const std::string& host, const std::string& folder,
                       std::chrono::steady_clock::time_point deadline,
                       const std::function<void()>& check = {});

/// Connects to the gate of a run, sends the pass and checks the answer, until
/// `deadline`. Throws error(peer_failure) if nobody listens, if there is no
/// answer, or if the answer is wrong. Throws error(invalid_argument |
/// io_failure) if the pass cannot be read.
descriptor knock(const std::string& host, std::uint16_t port,
                 const std::string& folder,
                 std::chrono::steady_clock::time_point deadline);

} // namespace troupe::actors

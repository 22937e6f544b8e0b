// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/remote/loopback.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace troupe::actors {

/// Owns a file descriptor.
class descriptor {
public:
  explicit descriptor(int fd = -1) noexcept : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(other.release()) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor();

  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }
  explicit operator bool() const noexcept { return fd_ >= 0; }

private:
  int fd_;
};

/// The port of a socket's own end, of its other end; 0 if there is none.
std::uint16_t port_of(int fd);
std::uint16_t port_of_peer(int fd);

/// What the processes of one run know and nobody else does: the knock, which
/// who connects shows, and the answer of who listens. Random; in a file that
/// its owner alone may read.
struct run_pass {
  using token = std::array<std::byte, 32>;
  token knock{};
  token answer{};

  static run_pass random();
};

/// The file of the pass of the run that listens on `port`. An empty folder:
/// /tmp/troupe-UID, made if there is none. Throws error(invalid_argument) if
/// others than its owner may enter the folder.
std::string pass_path(const std::string& folder, std::uint16_t port);

/// Lets connections to a loopback port in that show the pass of the run.
///
/// Nothing that a stranger sends comes further than here: not before 32 right
/// bytes have come is a socket handed on. Who has not sent them after two
/// seconds is sent away; so is the oldest of too many.
class gate {
public:
  /// Listens and writes the file of the pass.
  /// @param port 0: any
  /// @param admit takes each socket that may come in, and the gate's port;
  /// called on the gate's thread
  /// Throws error(peer_failure) if it cannot listen there,
  /// error(io_failure | invalid_argument) if it cannot write the pass.
  gate(const std::string& host, std::uint16_t port, const std::string& folder,
       std::function<void(descriptor, std::uint16_t port)> admit);
  /// Stops to listen and removes the file.
  ~gate();
  gate(const gate&) = delete;
  gate& operator=(const gate&) = delete;

  std::uint16_t port() const noexcept { return port_; }

private:
  void serve();

  std::function<void(descriptor, std::uint16_t port)> admit_;
  descriptor listening_;
  descriptor wake_, woken_; // a pipe: its end is the gate's
  std::uint16_t port_ = 0;
  std::string path_;
  run_pass pass_;
  std::thread thread_;
};

/// Connects to the gate of a run, shows the pass and takes the answer, until
/// `deadline`. Throws error(peer_failure) if nobody listens, answers, or who
/// answers does not know the run; error(invalid_argument | io_failure) if the
/// pass cannot be read.
descriptor knock(const std::string& host, std::uint16_t port,
                 const std::string& folder,
                 std::chrono::steady_clock::time_point deadline);

} // namespace troupe::actors

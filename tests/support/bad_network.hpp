// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace troupe::test {

/// What happens to packets on their way. Probabilities are in percent.
struct network_faults {
  unsigned lost = 0;
  unsigned doubled = 0;
  unsigned late = 0;     ///< overtaken by others: 5 ms more
  unsigned delay_ms = 0; ///< of all
  /// Bytes per second that pass; 0: any number. A quarter of a second's bytes
  /// wait; more are lost, as in a router.
  std::uint64_t rate = 0;
};

/// What has happened to packets.
struct network_counts {
  std::uint64_t carried = 0, lost = 0, doubled = 0, late = 0;
  std::uint64_t bytes = 0; ///< of those that were carried
};

/// Hosts of the test's own, each with a network namespace and the address
/// 10.78.0.N, N from 1 on. A thread of the test carries every packet between
/// them, and can lose, double, reorder and delay them (TUN devices).
///
/// Thread rule: one thread.
class bad_network {
public:
  /// False without the rights to make one, as in most containers.
  static bool is_possible();

  /// @param seed of what happens to which packet
  bad_network(std::size_t hosts, std::uint64_t seed);
  ~bad_network();
  bad_network(const bad_network&) = delete;
  bad_network& operator=(const bad_network&) = delete;

  static std::string address_of(std::size_t host) {
    return "10.78.0." + std::to_string(host + 1);
  }
  /// Moves the calling thread, and threads that it starts, to a host. Called in
  /// a child process.
  void enter(std::size_t host) const;

  void set(const network_faults& faults);
  network_counts counts() const;
  /// Loses all packets from one host to another, until `open`.
  void close(std::size_t from, std::size_t to);
  void open();

private:
  class pump;
  std::unique_ptr<pump> pump_;
};

} // namespace troupe::test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// What carries the values of collectives between processes. All give the same
/// bits, except on several hosts (see `node_options::deterministic`).
enum class group_engine : std::uint8_t {
  /// shared_memory on one host, gloo on several. `troupe train` replaces it by
  /// mpi where mpirun has started ranks on several hosts.
  automatic,
  shared_memory, ///< all processes are on one host
  gloo,          ///< TCP, by the library Gloo
  mpi,           ///< process i is rank i of MPI_COMM_WORLD
};

/// "auto", "shm", "gloo" or "mpi".
std::string_view to_string(group_engine engine) noexcept;
/// From these names. Throws error(invalid_argument) for another one.
group_engine parse_group_engine(std::string_view text);

/// How processes on several hosts reach each other.
struct host_network {
  /// A file that `troupe credentials` has made for this process, or the folder
  /// of the files of all. Control messages go over TLS, and both sides prove
  /// with it that they belong to the job.
  std::string credentials;
  /// Gloo and MPI encrypt nothing and ask nobody for a password. True says that
  /// no stranger can reach the network that they use. Otherwise the run is
  /// refused.
  bool is_trusted = false;
  /// Name of a network interface of this host, such as "eth1". Processes reach
  /// this one at its address, for control messages and by Gloo; `host` must
  /// lead to that of process 0. MPI chooses by its own settings. Empty: the
  /// address from which process 0 is reached.
  std::string interface = {};
};

/// One process of a distributed run. All processes make an executor with the
/// same program, parameters and options, except for `process`. They submit the
/// same number of steps, each with samples of its own (`executor::own_share`).
/// Each process runs the handles of its own devices, and its scope has values
/// of these only. If one process is lost or leaves, the run ends in all of
/// them. Functions in it are called on threads of the executor, or on the
/// thread that makes it.
struct node_options {
  std::vector<std::size_t> process_of_device; ///< one per device
  std::size_t process = 0;                    ///< the number of this process
  /// Host of process 0. If all processes are on one host: "localhost" or a
  /// loopback address (127.0.0.0/8 or ::1). Otherwise an address or a name
  /// under which the other hosts reach it; process 0 listens on this address
  /// alone.
  std::string host = "127.0.0.1";
  /// Port of process 0. If it is 0, process 0 takes any free port, and the
  /// others find it through `pass_folder`, which only this run must use.
  std::uint16_t port = 0;
  group_engine engine = group_engine::automatic;
  /// Set if the processes are on several hosts. Needs a port.
  std::optional<host_network> network = {};
  /// Between hosts, gloo and mpi add the values of each host first, in memory
  /// that its processes share: a host then sends as much as one device. True:
  /// they do not, and results have the bits of one process with as many
  /// devices.
  bool deterministic = false;
  /// Folder through which process 0 hands the access secret to the other
  /// processes. Only its owner may have access to it. Empty: /tmp/troupe-UID.
  std::string pass_folder = {};
  /// What else must be the same in all processes, such as options of which
  /// `kernels` was made: names and values. The first that differs is named.
  std::vector<std::pair<std::string, std::string>> agreed = {};
  /// Process 0: called with the port once the process listens on it.
  std::function<void(std::uint16_t port)> listening = {};
  int timeout_ms = 30000; ///< how long to wait until all processes have joined
  /// Called now and then while waiting for others to join, if set. What it
  /// throws ends the wait.
  std::function<void()> check = {};
  /// A process that gives no sign of life for so long is lost: the run ends in
  /// the others. Must be longer than any pause (SIGSTOP, a debugger) that the
  /// run should survive.
  int silence_limit_ms = 5000;
  /// A process that lives is given up if a collective has waited this long for
  /// it.
  int stall_limit_ms = 600'000;
  /// Called when a collective has waited longer than `silence_limit_ms` for
  /// `process`: the text names both, and what that process does. On a thread of
  /// the executor's; must not call the executor.
  std::function<void(std::size_t process, const std::string& what)> noticed =
    {};

  /// Number of processes in the run: the largest process number plus 1.
  std::size_t processes() const;
};

} // namespace troupe

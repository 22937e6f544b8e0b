// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/communicator.hpp>
#include <troupe/comm/engine/key_store.hpp>
#include <troupe/comm/shm/process_memory.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::comm {

/// How the processes of a group over an engine find those of the same host.
/// They share memory, through which their parcels go.
struct host_group_options {
  /// Equal in the processes of a host alone, such as `host_identity()`.
  std::uint64_t host = 0;
  /// As in `shm_group_options`, the same for the processes of a host. The group
  /// appends a text that differs between its hosts.
  std::string path;
  /// Memory of this process, in which values are added where they lie; others
  /// are copied there first.
  std::shared_ptr<process_memory> memory = {};
  /// The same in all processes. Values that are not in letters are added inside
  /// each host first, so that it sends one value instead of one per rank.
  /// Results then depend on which ranks a host has: (x0 + x1) + (x2 + x3) for
  /// two hosts of two ranks. Makes no difference if there is one host, or each
  /// host has one rank.
  bool adds = true;
};

/// What the processes of a group over an engine agree on, and how long to wait
/// for them.
struct engine_group_options {
  /// Numbers of this process's ranks, as in `shm_group_options`.
  std::vector<std::size_t> ranks = {};
  /// How long to wait for the other processes.
  std::chrono::milliseconds timeout{30'000};
  /// Called now and then while waiting, if set. What it throws ends the wait.
  std::function<void()> check = {};

  ///@{
  /// The same in all processes.

  /// Whether processes of a host share memory; what it says differs between
  /// processes.
  std::optional<host_group_options> hosts = {};
  /// Larger values are sent in pieces of this size.
  std::size_t piece_bytes = std::size_t{1} << 20;
  /// If the values of every rank have at most so many bytes, divided by the
  /// number of processes, a call takes one message per rank and process. Two
  /// processes send no more bytes in this way, more processes do.
  std::size_t letter_bytes = std::size_t{128} << 10;
  ///@}
};

/// How processes find each other for a group over Gloo.
struct gloo_group_options : engine_group_options {
  /// Where they publish their addresses; can be null for a single process. It
  /// is used until the group was joined.
  std::shared_ptr<key_store> store = {};
  std::size_t process = 0;   ///< number of this process, less than `processes`
  std::size_t processes = 1; ///< number of all
  /// Address or host name of this process on the network.
  std::string address = "127.0.0.1";
};

/// Joins a group over TCP (Gloo), and waits for the other processes. Result i
/// is the end of this process's i-th rank. Values can be in any memory that the
/// CPU can read and write; unless values are added by host, results
/// have the bits of `make_local_group`.
///
/// Gloo's connections have no password: whoever can connect to the address can
/// disturb the group. A process that is lost is noticed and named. One that is
/// stopped is not, because its connections stay: only its beats stop (see
/// `communicator::peers`).
///
/// Throws error(not_found) if this build has no Gloo, error(invalid_argument)
/// for options that make no sense or differ between the processes,
/// error(io_failure) if the address cannot be used, error(peer_failure) if
/// processes are missing after the timeout, and what the store throws.
std::vector<std::unique_ptr<communicator>>
join_gloo_group(const gloo_group_options& options);

/// Joins a group of the processes that `mpirun` or `srun` has started, and
/// waits for them. The number of a process is its rank in MPI_COMM_WORLD. All
/// processes join the same groups in the same order. The rest is as in
/// `join_gloo_group`.
///
/// Initializes MPI if nobody has, and then finalizes it when the process exits.
/// MPI must allow calls from several threads, one at a time
/// (MPI_THREAD_SERIALIZED), and nobody else may call it while there is a group.
/// If a process is lost, MPI itself ends the others.
///
/// Throws error(not_found) if this build has no MPI, and
/// error(invalid_argument) if the process was not started by MPI.
std::vector<std::unique_ptr<communicator>>
join_mpi_group(const engine_group_options& options = {});

/// What this build knows of an engine.
struct engine_support {
  bool is_built = false;
  std::string version = {}; ///< of the library
  /// True if a group can be joined now: of MPI, if this process was started by
  /// it.
  bool is_usable = false;
  std::size_t process = 0;   ///< number that MPI has given this process
  std::size_t processes = 1; ///< number of processes that MPI has started
};
engine_support gloo_support();
engine_support mpi_support();

} // namespace troupe::comm

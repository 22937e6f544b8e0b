// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::apps {

/// One of the processes that measure together.
struct probe_place {
  std::size_t process = 0;
  std::size_t processes = 1;
  std::string folder; ///< in which they meet
};

/// What `measure_sums` measures, the same in all processes.
struct probe_plan {
  std::vector<std::size_t> bytes; ///< of the tensors, multiples of 4
  std::size_t rounds = 1;         ///< per size
};

/// How a group of these processes can be made, if at all.
struct probe_engine {
  std::string name;    ///< "shm", "gloo" or "mpi"
  std::string missing; ///< why it cannot be made; empty: it can
};

/// The engine of that name, which is one of the three.
/// @param is_launched MPI has started the processes
probe_engine find_engine(const std::string& name, bool is_launched,
                         std::size_t processes);

/// What this process was started as by MPI: one of several, or alone.
struct launched_place {
  bool is_launched = false;
  std::size_t process = 0;
  std::size_t processes = 1;
};
launched_place place_under_mpi();

/// Makes a group and times all_reduce of float32, a rank per process. Returns
/// the median of the rounds' times per call, in us, by size. All processes call
/// it.
/// @param check called now and then while this process waits for others to
///   join, and in between calls; what it throws ends the measurement
std::vector<double> measure_sums(const probe_engine& by, const probe_place& at,
                                 const probe_plan& plan,
                                 const std::function<void()>& check);

/// Starts the other processes, which run `act(process)` and end. Ends them when
/// it is destroyed.
class probe_children {
public:
  /// @param processes number of all processes
  probe_children(std::size_t processes,
                 const std::function<void(std::size_t)>& act);
  ~probe_children();
  probe_children(const probe_children&) = delete;
  probe_children& operator=(const probe_children&) = delete;
  /// Throws error(peer_failure) if one of them has failed.
  void check();
  /// Waits for their end. Throws as `check` does.
  void wait();

private:
  std::vector<int> ids_; // 0: it has ended
};

} // namespace troupe::apps

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace troupe::apps {

/// What `troupe bench comm` measures.
struct comm_plan {
  std::size_t processes = 2;
  std::vector<std::size_t> bytes; ///< of the tensors, multiples of 4
  std::size_t rounds = 1;         ///< per size
  std::vector<std::string> engines;
  bool json = false;
};

/// Measures sums between processes and prints the times. Measures in one of the
/// processes if MPI has started them, and otherwise in processes that this one
/// starts: call it before others have started threads that use locks.
///
/// Throws error(peer_failure) if one of the processes fails, and the errors of
/// the engines.
void measure_comm(const comm_plan& wanted);

} // namespace troupe::apps

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

/// Another library's all_reduce between two processes, for process_bench.
class rival {
public:
  virtual ~rival() = default;
  /// Adds the values of both processes in place.
  virtual void all_reduce(float* data, std::size_t count) = 0;
};

/// Null if this build has no Gloo.
/// @param folder where the processes find each other
std::unique_ptr<rival> connect_gloo(std::size_t rank,
                                    const std::string& folder);

/// Null if this build has no MPI or if mpirun has not started this process.
std::unique_ptr<rival> connect_mpi();
/// True if mpirun has started this process and this build has MPI.
bool is_under_mpirun();
/// This process's number under mpirun.
std::size_t mpi_rank();

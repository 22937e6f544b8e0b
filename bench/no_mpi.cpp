// SPDX-License-Identifier: Apache-2.0
#include "rivals.hpp"

std::unique_ptr<rival> connect_mpi() {
  return nullptr;
}

bool is_under_mpirun() {
  return false;
}

std::size_t mpi_rank() {
  return 0;
}

// SPDX-License-Identifier: Apache-2.0

// Apart from the engine: a program that only asks does not load the module.
#include <troupe/base/module.hpp>
#include <troupe/comm/engine/join.hpp>

#include <mpi.h>

#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string>

namespace troupe::comm {

namespace {

/// What the launcher of MPI says in the environment; nothing if none of these
/// variables is set. Open MPI, PMIx and PMI (Slurm, MPICH) name it differently.
std::optional<std::size_t>
number_in_environment(std::initializer_list<const char*> names) {
  for (const auto* name : names)
    if (const auto* text = std::getenv(name))
      return std::strtoul(text, nullptr, 10);
  return std::nullopt;
}

} // namespace

engine_support mpi_support() {
  const auto rank =
    number_in_environment({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"});
  const auto size =
    number_in_environment({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                           "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  return {.is_built = true,
          .version = "of standard " + std::to_string(MPI_VERSION) + "."
                     + std::to_string(MPI_SUBVERSION),
          .is_usable = rank.has_value(),
          .process = rank.value_or(0),
          .processes = size.value_or(1)};
}

} // namespace troupe::comm

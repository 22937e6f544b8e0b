// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace troupe::comm {

/// What a launcher tells a process that it started.
struct rank_environment {
  /// "troupe launch", "torchrun", "mpirun" (Open MPI), "mpiexec" (MPICH, Intel
  /// MPI and others with Hydra), or "srun" (Slurm).
  std::string launcher;
  std::size_t rank = 0;       ///< number in the job, less than `size`
  std::size_t size = 1;       ///< number of the job's ranks
  std::size_t local_rank = 0; ///< number among the ranks of this host
  std::size_t local_size = 1; ///< number of the ranks of this host
  /// Is equal on all ranks of the job, and differs from other jobs of this
  /// user, also from those before a restart. It can be the name of a file: at
  /// most 64 of the characters A-Z, a-z, 0-9, '.', '_' and '-', and no '.'
  /// first. Hydra names no job: the text is then equal only on the ranks of a
  /// host.
  std::string job;
  /// The folder that the launcher made for the job. Empty if it made none.
  std::string rendezvous;
  /// Where rank 0 lets the others in, and what proves that a rank belongs to
  /// the job (`read_credentials`). Empty if not told, and if all
  /// ranks of the job are on one host.
  std::string address = {}; ///< a host's name or its address in figures
  std::uint16_t port = 0;   ///< set if `address` is
  std::string credentials = {};
  /// The network interface of this host by which ranks of other hosts reach
  /// this one. Empty if not told, and if all ranks are on one host.
  std::string interface = {};
  /// In an elastic job, the number that the process keeps while its rank
  /// changes (job_epoch.hpp).
  std::optional<std::size_t> member = std::nullopt;
  /// Set if the job is elastic and its launcher keeps no rendezvous: with how
  /// many ranks it goes on, and how many it takes.
  std::size_t least = 0, most = 0;
};

/// So many ports after that of TROUPE_ADDRESS are for the epochs of an elastic
/// job on several hosts. An epoch has another one than those before it: who
/// listens there may not have ended yet.
constexpr std::uint16_t ports_of_epochs = 64;

/// What a process knows about where it comes from.
struct environment {
  /// The value of a variable; nothing if it is not set.
  std::function<std::optional<std::string>(const std::string& name)> value;
  /// A text that names the closest ancestor of this process in whose
  /// environment the variable is not set: the process that set it.
  std::function<std::string(const std::string& name)> process_that_set;
};

/// That of this process. Reads the variables at each call, so no other thread
/// may set any meanwhile.
environment own_environment();

/// Finds out which rank of a job this process is. Nothing if no launcher
/// started it. A variable with an empty value counts as not set.
///
/// A process can be inside of several launchers. The innermost is then taken;
/// each of these can be started by those that follow:
///  1. `troupe launch`: TROUPE_RANK, TROUPE_SIZE, TROUPE_LOCAL_RANK,
///     TROUPE_LOCAL_SIZE, TROUPE_JOB and, optionally, TROUPE_RENDEZVOUS. In an
///     elastic job, TROUPE_MEMBER too. Other launchers can set them too.
///  2. torchrun: TORCHELASTIC_RUN_ID. RANK and WORLD_SIZE alone mean nothing.
///     The port in MASTER_PORT belongs to torchrun, it is only used as a name.
///  3. mpirun of Open MPI: OMPI_COMM_WORLD_RANK or OMPI_COMM_WORLD_SIZE.
///  4. mpiexec of Hydra: MPI_LOCALRANKID or MPI_LOCALNRANKS. PMI_RANK alone can
///     be Slurm's.
///  5. srun: SLURM_STEP_ID, unless it is the number of a batch script or of an
///     interactive shell of salloc. These are no ranks.
///
/// With the first, unless TROUPE_MEMBER is set, and with torchrun and srun,
/// TROUPE_ELASTIC=MIN:MAX makes a job elastic. On several hosts, it needs
/// TROUPE_ADDRESS, whose port is followed by 64 that the job can use, and
/// TROUPE_CREDENTIALS. MPI's launchers end all ranks when one ends.
///
/// With each of them, TROUPE_ADDRESS=HOST:PORT, TROUPE_CREDENTIALS and
/// TROUPE_INTERFACE are read too if the job is on several hosts; an IPv6
/// address stands in [].
///
/// Throws error(invalid_argument), which names the variable and its value, if
/// one is missing, is no number, or contradicts another.
std::optional<rank_environment> find_rank(const environment& variables);

/// The same for the environment of this process.
std::optional<rank_environment> find_rank();

} // namespace troupe::comm

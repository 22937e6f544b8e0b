// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/node_options.hpp>
#include <troupe/comm/shm/process_memory.hpp>

#include <memory>

namespace troupe::actors {

class collective_ranks;
class node_link;

/// The engine of a run: `automatic` has been replaced.
group_engine engine_of(const node_options& options);

/// Joins the group of a run's devices over its processes. Device i is rank i.
/// Called in all processes of a run that has begun; waits for them. Does
/// nothing in a process without devices.
/// @param link between the processes; if one is lost, this throws its error
/// @param own memory of this process, which others of its host map
///
/// Throws what `comm::join_shm_group`, `join_gloo_group` and `join_mpi_group`
/// throw. Throws error(invalid_argument) if MPI numbers the processes in
/// another way.
void join_run_group(const node_options& options, node_link& link,
                    std::shared_ptr<comm::process_memory> own,
                    collective_ranks& into);

} // namespace troupe::actors

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/comm/shm/process_memory.hpp>

#include <memory>

namespace troupe::actors {

class collective_ranks;
class node_link;

/// Joins the group of a run's devices over its processes, which are on one
/// host. Device i is rank i. Called in all processes of a run that has begun;
/// waits for them.
/// @param link between the processes; if one is lost, this throws its error
/// @param own memory of this process
///
/// Throws what `comm::join_shm_group` throws.
void join_host_group(const node_options& options, const node_link& link,
                     std::shared_ptr<comm::process_memory> own,
                     collective_ranks& into);

} // namespace troupe::actors

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/elastic/epoch_consensus.hpp>
#include <troupe/apps/elastic/job_processes.hpp>

#include <cstdint>
#include <map>
#include <string>

namespace troupe::apps {

/// What the host of a folder keeps: the file `votes`, and the last epoch
/// (comm::read_epoch). If there is no such file, nothing but a new name of the
/// folder. Throws error(bad_file | io_failure).
vote_memory read_votes(const std::string& folder);
/// Replaces the file, in one step. `decided` is not in it. Throws
/// error(io_failure).
void write_votes(const std::string& folder, const vote_memory& votes);

/// Writes an epoch that has been decided into the folder of this host, after
/// the credentials of the host's members (comm::to_text, by their numbers).
///
/// Before that, it kills processes of this host that were members of the epoch
/// before and are not any more: the others have given them up, and may have
/// done the last step otherwise. Throws error(bad_file | io_failure).
void begin_here(const std::string& folder, const job_processes& processes,
                const comm::job_epoch& epoch,
                const std::map<std::uint64_t, std::string>& credentials);

} // namespace troupe::apps

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::apps {

/// A host of a job.
struct job_host {
  /// What a remote shell takes: NAME or USER@NAME.
  std::string destination;
  /// The same without the user. An IPv6 address has no brackets.
  std::string name;
  std::size_t ranks = 1;
  /// At which ranks of other hosts reach those of this one, if that is not the
  /// name.
  std::string address = {};
};

/// Where a rank of a job on several hosts runs. Ranks are numbered host by
/// host.
struct host_place {
  std::size_t host = 0;       ///< index of the host
  std::size_t local_rank = 0; ///< number among the ranks of the host
};

/// Parses the list of `troupe launch --hosts`: NAME[:RANKS],... A name has
/// letters, digits, '.', '-' and '_', or is an IPv6 address in brackets; USER@
/// can stand before it. Throws usage_error for anything else, if a host is
/// there twice, if there are several hosts and other hosts cannot reach one by
/// its name (localhost), or if there are too many ranks.
std::vector<job_host> parse_hosts(const std::string& list);
/// Appends the hosts of another list. Throws what `parse_hosts` throws for all
/// of them together.
std::vector<job_host> with_hosts(std::vector<job_host> hosts,
                                 const std::string& list);

std::size_t ranks_of(const std::vector<job_host>& hosts);
/// @param rank less than `ranks_of(hosts)`
host_place place_of(std::size_t rank, const std::vector<job_host>& hosts);

/// The host's address, or else its name.
const std::string& reached_at(const job_host& host);
/// "NAME:PORT" with what `reached_at` says, in brackets if it is an IPv6
/// address.
std::string address_of(const job_host& host, std::uint16_t port);

} // namespace troupe::apps

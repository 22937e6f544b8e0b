// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <sys/types.h>

namespace troupe::apps {

/// Somebody asks a running elastic job to start more ranks. Requests and
/// answers are files in the job's rendezvous folder, which only this user can
/// enter.
struct join_request {
  std::string id; ///< names the file of the answer
  std::size_t ranks = 1;
  /// On these hosts, as in `parse_hosts`, as many as these have together.
  /// Empty: on the launcher's own.
  std::string hosts = {};
};

/// What the launcher answers, as one line.
struct join_answer {
  bool is_accepted = false;
  std::string text;
};

///@{
/// The launcher's side. `take_join_request` returns a request that has not been
/// taken yet, or nothing; files that are no requests are removed. Throws
/// error(io_failure) if the answer cannot be written.
std::optional<join_request> take_join_request(const std::string& folder);
void answer_join_request(const std::string& folder, const join_request& request,
                         const join_answer& answer);
///@}

/// Asks the elastic job of the process `launcher` of this user on this host to
/// start more ranks, and waits for the answer. Throws error(not_found) if that
/// process has no such job or does not answer within ten seconds; the request
/// is then withdrawn. Throws error(io_failure).
/// @param request without `id`
join_answer ask_to_join(pid_t launcher, const join_request& request);

} // namespace troupe::apps

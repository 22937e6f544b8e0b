// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::dashboard {

// What requests of strangers say, in the parts that the HTTP library leaves as
// text. The functions keep no state and can be called on any thread.

/// The parts of a request's target, e.g. "/api/v1/why?handle=7".
struct request_target {
  std::string path;                           ///< as sent, from the first "/"
  std::map<std::string, std::string> query{}; ///< decoded
};

/// Takes a target apart. Nothing if it is no path with an optional query, if it
/// has a parameter twice or more than 16, or if a wrong escape or a control
/// character is in it.
std::optional<request_target> parse_target(std::string_view target);

/// The value of the first cookie of that name in a header "Cookie".
std::optional<std::string_view> cookie_in(std::string_view header,
                                          std::string_view name);

/// The secret of a header "Authorization: Bearer SECRET".
std::optional<std::string_view> bearer_in(std::string_view header);

/// True if `word` is in a list with commas. Upper case is not lower case.
bool is_in_list(std::string_view list, std::string_view word);

/// A host and its port.
struct host_and_port {
  std::string host; ///< in lower case; an IPv6 address is in brackets
  std::optional<unsigned> port{}; ///< less than 65536
};

/// Takes a header "Host" apart. Nothing if it is not one.
std::optional<host_and_port> parse_host(std::string_view header);

} // namespace troupe::dashboard

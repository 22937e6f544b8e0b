// SPDX-License-Identifier: Apache-2.0
// Requests to the dashboard's server, as the HTTP library hands them over: a
// line each for method, target, Host, Origin, Cookie, Authorization and the
// protocols of a WebSocket. SECRET stands for the value of a session.

#include "fuzz/fuzz_target.hpp"

#include <support/files.hpp>
#include <troupe/dashboard/server/front_door.hpp>
#include <troupe/dashboard/server/request_text.hpp>

#include <algorithm>
#include <string>

namespace troupe::fuzz {

namespace {

using namespace dashboard;

std::string_view take_line(std::string_view& text) {
  const auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

/// @param shows_secret the request has a session to view. No input has a secret
///   of its own: each door makes new ones
void check_verdict(const verdict& made, bool shows_secret) {
  if (made.next != verdict::way::answer && !shows_secret)
    fail("a request without a secret gets in");
  if (made.request.may_control || made.request.method == "POST")
    fail("a session to view controls the run");
  if (made.next == verdict::way::ask && !made.request.path.starts_with('/'))
    fail("a path that is none");
  for (const auto& [name, value] : made.request.query)
    for (const unsigned char c : name + value)
      if (c < ' ' || c == 0x7f)
        fail("a control character in a query");
  for (const auto& [name, value] : made.headers)
    if (value.find_first_of("\r\n") != value.npos)
      fail("a header of two lines");
}

void check_parts(std::string_view host, std::string_view target) {
  const auto named = parse_host(host);
  if (named) {
    const auto port = named->port ? ":" + std::to_string(*named->port) : "";
    const auto again = parse_host(named->host + port);
    if (!again || again->host != named->host || again->port != named->port)
      fail("a host changes on its way");
  }
  const auto parsed = parse_target(target);
  if (parsed && !target.starts_with(parsed->path))
    fail("a path that was not sent");
}

} // namespace

// A parameter is a value in a map, and there are at most 16.
memory_allowance allowance() {
  return {.per_byte = 32};
}

void run_target(std::string_view bytes) {
  const web_access access;
  const auto session = access.cookie_of(right::view);
  front_door door{access, own_hosts{{.host = "127.0.0.1", .port = 8000}}};
  request_head head;
  head.method = take_line(bytes);
  head.target = take_line(bytes);
  head.host = take_line(bytes);
  head.host_headers = 1;
  head.origin = take_line(bytes);
  head.origin_headers = head.origin.empty() ? 0 : 1;
  const std::string sent{take_line(bytes)};
  const auto cookie = test::replaced(sent, "SECRET", session);
  head.cookie = cookie;
  head.authorization = take_line(bytes);
  head.protocols = take_line(bytes);
  head.is_upgrade = !head.protocols.empty();
  head.content_type = bytes;
  check_parts(head.host, head.target);
  check_verdict(door.judge(head, rate_limit::time_point{}), cookie != sent);
}

} // namespace troupe::fuzz

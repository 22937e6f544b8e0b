// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/server/own_hosts.hpp>

#include <troupe/dashboard/server/request_text.hpp>

namespace troupe::dashboard {

namespace {

constexpr unsigned default_port(bool has_tls) {
  return has_tls ? 443 : 80;
}

} // namespace

bool own_hosts::knows(std::string_view host_header) const {
  const auto named = parse_host(host_header);
  return named
         && named->port.value_or(default_port(where_.has_tls)) == where_.port
         && is_name(named->host);
}

bool own_hosts::is_own_origin(std::string_view origin,
                              std::string_view host_header) const {
  const std::string_view begin = scheme();
  if (!origin.starts_with(begin))
    return false;
  const auto from = parse_host(origin.substr(begin.size()));
  const auto to = parse_host(host_header);
  const auto usual = default_port(where_.has_tls);
  return from && to && from->host == to->host
         && from->port.value_or(usual) == to->port.value_or(usual);
}

std::string own_hosts::origin() const {
  const auto& host =
    where_.name_in_links.empty() ? where_.host : where_.name_in_links;
  return scheme() + host + ":" + std::to_string(where_.port);
}

const char* own_hosts::scheme() const noexcept {
  return where_.has_tls ? "https://" : "http://";
}

bool own_hosts::is_name(const std::string& host) const {
  if (host == where_.host)
    return true;
  if (where_.is_loopback
      && (host == "localhost" || host == "127.0.0.1" || host == "[::1]"))
    return true;
  return where_.is_further_name && where_.is_further_name(host);
}

} // namespace troupe::dashboard

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace troupe::dashboard {

/// The names under which browsers may reach the server. A page of another name
/// that leads to the same address (DNS rebinding) is refused, and so are
/// requests that pages of other servers make.
///
/// Thread rule: after construction, any thread.
class own_hosts {
public:
  /// Where the server listens.
  struct place {
    std::string host; ///< in lower case; an IPv6 address is in brackets
    std::uint16_t port = 0;
    bool is_loopback = true; ///< localhost, 127.0.0.1 and [::1] are names of it
    bool has_tls = false;
    /// True for further names, in lower case. May be empty.
    std::function<bool(const std::string&)> is_further_name{};
    /// Of these, the one in links. Empty: links have `host`.
    std::string name_in_links{};
  };

  explicit own_hosts(place where) : where_(std::move(where)) {}

  /// True if a header "Host" names this server, with its port.
  bool knows(std::string_view host_header) const;
  /// True if a header "Origin" is that of a page from this server.
  /// @param host_header of the same request
  bool is_own_origin(std::string_view origin,
                     std::string_view host_header) const;
  /// The beginning of links, e.g. "http://127.0.0.1:8000".
  std::string origin() const;

  std::uint16_t port() const noexcept { return where_.port; }
  bool has_tls() const noexcept { return where_.has_tls; }

private:
  const char* scheme() const noexcept;
  bool is_name(const std::string& host) const;

  place where_;
};

} // namespace troupe::dashboard

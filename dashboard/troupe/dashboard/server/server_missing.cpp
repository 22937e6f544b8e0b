// SPDX-License-Identifier: Apache-2.0
// Linked instead of web_server.cpp where CMake finds no Boost.
#include <troupe/dashboard/server/web_server.hpp>

#include <troupe/base/error.hpp>

namespace troupe::dashboard {

class web_server::implementation {
public:
  std::string no_link;
};

// Whoever needs a server is told of the build instead.
void require_safe(const web_server_options&, bool) {}

web_server::web_server(web_server_options, web_access, web_handler) {
  throw error(errc::not_found, "this build has no dashboard: install "
                               "libboost-dev and configure anew");
}

// There is no object for which one of these is called.
web_server::~web_server() = default;

void web_server::publish(frame) {}

std::size_t web_server::watchers() const noexcept {
  return 0;
}

std::uint16_t web_server::port() const noexcept {
  return 0;
}

const std::string& web_server::view_link() const noexcept {
  return implementation_->no_link;
}

const std::string& web_server::control_link() const noexcept {
  return implementation_->no_link;
}

double web_server::cpu_seconds() const noexcept {
  return 0;
}

} // namespace troupe::dashboard

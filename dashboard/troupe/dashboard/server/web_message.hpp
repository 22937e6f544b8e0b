// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>

namespace troupe::dashboard {

/// A request whose sender may make it.
struct web_request {
  std::string method; ///< "GET", also for HEAD, or "POST"
  std::string path;   ///< e.g. "/api/v1/graph"
  std::map<std::string, std::string> query{}; ///< decoded
  std::string body{};
  bool may_control = false; ///< the sender may use POST /api/v1/control
};

/// What is answered.
struct web_response {
  unsigned status = 200;
  std::string type = "text/plain; charset=utf-8"; ///< the media type
  std::string body{};
};

/// Answers requests, quickly: all others wait meanwhile.
using web_handler = std::function<web_response(const web_request&)>;

} // namespace troupe::dashboard

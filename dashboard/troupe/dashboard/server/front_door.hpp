// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/dashboard/server/access.hpp>
#include <troupe/dashboard/server/own_hosts.hpp>
#include <troupe/dashboard/server/rate_limit.hpp>
#include <troupe/dashboard/server/web_message.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::dashboard {

/// What a request says about itself, apart from its body.
struct request_head {
  std::string_view method, target;
  std::size_t host_headers = 0; ///< how many
  std::string_view host{};
  std::size_t origin_headers = 0; ///< how many
  std::string_view origin{};
  std::string_view cookie{}, authorization{}, content_type{};
  bool is_upgrade = false;      ///< asks for a WebSocket
  std::string_view protocols{}; ///< that it offers for the WebSocket
};

/// What becomes of a request.
struct verdict {
  enum class way : std::uint8_t {
    answer, ///< `answer` is sent
    ask,    ///< `request`, with the body, is for the handler
    watch,  ///< the connection becomes a WebSocket
  };
  way next = way::answer;
  web_response answer{};
  /// Further headers of the answer, by name.
  std::vector<std::pair<std::string, std::string>> headers{};
  bool ends_connection = false; ///< after the answer
  web_request request{};
};

/// Decides on each request: whom it comes from, where it leads, whether it is
/// refused. Knows neither sockets nor the run.
///
/// Thread rule: one thread at a time.
class front_door {
public:
  front_door(web_access access, own_hosts hosts);

  verdict judge(const request_head& head, rate_limit::time_point now);

  ///@{
  /// What to open in a browser, once: to view, and to control as well.
  std::string view_link() const;
  std::string control_link() const;
  ///@}

private:
  std::optional<verdict> refuse_stranger(const request_head& head) const;
  verdict let_in(const std::string& token, right has,
                 rate_limit::time_point now);
  right right_of(const request_head& head) const;
  verdict refuse_unknown(const request_head& head, const std::string& path,
                         rate_limit::time_point now);
  std::string link(const std::string& token) const;

  web_access access_;
  own_hosts hosts_;
  std::string cookie_name_;
  rate_limit failures_;
};

/// A plain answer of one line.
verdict plain_answer(unsigned status, const std::string& line);

/// The headers of all answers: browsers keep the page to itself and store
/// nothing.
const std::vector<std::pair<std::string, std::string>>& common_headers();

/// The protocol of the WebSocket.
inline constexpr const char* live_protocol = "troupe.v1";

} // namespace troupe::dashboard

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/dashboard/server/connection.hpp>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include <memory>

namespace troupe::dashboard {

///@{
/// A connection on an accepted socket. The state, and the context of TLS, must
/// outlive it.
std::shared_ptr<connection>
make_plain_connection(boost::asio::ip::tcp::socket socket, server_state& state);
std::shared_ptr<connection>
make_tls_connection(boost::asio::ip::tcp::socket socket,
                    boost::asio::ssl::context& tls, server_state& state);
///@}

} // namespace troupe::dashboard

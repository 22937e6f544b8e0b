// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/server/client.hpp>
#include <troupe/dashboard/server/make_connection.hpp>

#include <boost/beast/ssl/ssl_stream.hpp>
#include <boost/beast/websocket/ssl.hpp>

#include <utility>

namespace troupe::dashboard {

std::shared_ptr<connection>
make_tls_connection(boost::asio::ip::tcp::socket socket,
                    boost::asio::ssl::context& tls, server_state& state) {
  using stream = boost::beast::ssl_stream<boost::asio::ip::tcp::socket>;
  return std::make_shared<client<stream>>(state, std::move(socket), tls);
}

} // namespace troupe::dashboard

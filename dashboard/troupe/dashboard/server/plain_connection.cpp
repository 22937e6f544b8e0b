// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/server/client.hpp>
#include <troupe/dashboard/server/make_connection.hpp>

#include <utility>

namespace troupe::dashboard {

std::shared_ptr<connection>
make_plain_connection(boost::asio::ip::tcp::socket socket,
                      server_state& state) {
  return std::make_shared<client<boost::asio::ip::tcp::socket>>(
    state, std::move(socket));
}

} // namespace troupe::dashboard

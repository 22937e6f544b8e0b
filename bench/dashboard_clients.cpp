// SPDX-License-Identifier: Apache-2.0
//
// Clients of a live dashboard on this machine, for bench/tracing. Prints one
// line of JSON when they are done.
//   dashboard_clients 8080 secret.txt --watch            reads frames as they
//   come dashboard_clients 8080 secret.txt --stalled 200      never read what
//   they get dashboard_clients 8080 secret.txt --strangers 10000  one after the
//   other, most
//                                                        of them with nonsense
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;

namespace {

struct dashboard_place {
  std::uint16_t port = 0;
  std::string secret{};

  std::string host() const { return "127.0.0.1:" + std::to_string(port); }
  std::string bearer() const { return "Bearer " + secret; }
};

std::chrono::steady_clock::time_point end_after(double seconds) {
  return std::chrono::steady_clock::now()
         + std::chrono::duration_cast<std::chrono::nanoseconds>(
           std::chrono::duration<double>(seconds));
}

tcp::socket connected(asio::io_context& system, const dashboard_place& place) {
  tcp::socket socket{system};
  socket.connect({asio::ip::address_v4::loopback(), place.port});
  return socket;
}

/// What a browser sends to watch.
std::string request_to_watch(const dashboard_place& place) {
  return "GET /api/v1/live HTTP/1.1\r\nHost: " + place.host()
         + "\r\nAuthorization: " + place.bearer()
         + "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           "Sec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
           "Sec-WebSocket-Protocol: troupe.v1\r\n\r\n";
}

void watch(const dashboard_place& place, double seconds) {
  asio::io_context system;
  beast::websocket::stream<tcp::socket> stream{connected(system, place)};
  stream.set_option(beast::websocket::stream_base::decorator(
    [&](beast::websocket::request_type& request) {
      request.set(beast::http::field::authorization, place.bearer());
      request.set(beast::http::field::sec_websocket_protocol, "troupe.v1");
    }));
  stream.read_message_max(0); // no limit
  stream.handshake(place.host(), "/api/v1/live");
  std::size_t frames = 0, bytes = 0;
  beast::flat_buffer frame;
  const auto end = end_after(seconds);
  while (std::chrono::steady_clock::now() < end) {
    stream.read(frame);
    ++frames;
    bytes += frame.size();
    frame.clear();
  }
  stream.close(beast::websocket::close_code::normal);
  std::printf("{\"frames\": %zu, \"bytes\": %zu}\n", frames, bytes);
}

void stall(const dashboard_place& place, std::size_t clients, double seconds) {
  asio::io_context system;
  std::vector<tcp::socket> sockets;
  for (std::size_t i = 0; i < clients; ++i) {
    sockets.push_back(connected(system, place));
    asio::write(sockets.back(), asio::buffer(request_to_watch(place)));
  }
  std::this_thread::sleep_until(end_after(seconds));
  std::printf("{\"stalled\": %zu}\n", sockets.size());
}

/// Connections until the time is over. Of four, one says nothing, two say
/// nonsense, and one asks as it should.
void crowd(const dashboard_place& place, std::size_t clients, double seconds) {
  asio::io_context system;
  const auto request = "GET /api/v1/state HTTP/1.1\r\nHost: " + place.host()
                       + "\r\nAuthorization: " + place.bearer()
                       + "\r\nConnection: close\r\n\r\n";
  std::size_t served = 0, i = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (; i < clients; ++i) {
    // Evenly over the time: all at once would measure how fast this client is.
    std::this_thread::sleep_until(
      begin
      + std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(seconds * static_cast<double>(i)
                                      / static_cast<double>(clients))));
    auto socket = connected(system, place);
    if (i % 4 == 1)
      asio::write(socket, asio::buffer(std::string{"GET / HTTP"}));
    if (i % 4 == 2)
      asio::write(socket, asio::buffer(std::string{"\r\r\r"}));
    if (i % 4 != 3)
      continue;
    asio::write(socket, asio::buffer(request));
    std::string answer;
    boost::system::error_code ended;
    asio::read(socket, asio::dynamic_buffer(answer), ended);
    if (answer.starts_with("HTTP/1.1 200"))
      ++served;
  }
  std::printf("{\"connections\": %zu, \"served\": %zu}\n", i, served);
}

std::string secret_in(const std::string& path) {
  std::ifstream file{path};
  std::string secret;
  if (!(file >> secret))
    throw std::runtime_error("cannot read " + path);
  return secret;
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"Clients of a live dashboard"};
  dashboard_place place;
  std::string secret;
  bool watches = false;
  std::size_t stalled = 0, strangers = 0;
  double seconds = 3;
  app.add_option("PORT", place.port, "of the dashboard")->required();
  app.add_option("SECRET", secret, "its token file")->required();
  app.add_option("--seconds", seconds, "how long");
  auto* kinds = app.add_option_group("kind");
  kinds->add_flag("--watch", watches, "one that reads frames as they come");
  kinds->add_option("--stalled", stalled, "so many that read nothing");
  kinds->add_option("--strangers", strangers,
                    "so many, one after the other, most with nonsense");
  kinds->require_option(1);
  CLI11_PARSE(app, argc, argv);
  try {
    place.secret = secret_in(secret);
    if (watches)
      watch(place, seconds);
    else if (stalled > 0)
      stall(place, stalled, seconds);
    else
      crowd(place, strangers, seconds);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "dashboard_clients: %s\n", failure.what());
    return 1;
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// Clients of a live dashboard on this machine, for bench/tracing. Prints one
// line of JSON when they are done.
//   dashboard_clients 8080 secret.txt --watch
//     reads frames as they come
//   dashboard_clients 8080 secret.txt --stalled 200
//     never read what they get
//   dashboard_clients 8080 secret.txt --strangers 10000
//     within the time, most of them with nonsense
//   dashboard_clients 8080 secret.txt --strangers 10000 --elsewhere
//     the same at a listener of this program: what the clients cost by
//     themselves
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

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
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

/// One of many. It connects, says something, and goes; if it has asked, it goes
/// when it has the answer, or is closed.
class stranger : public std::enable_shared_from_this<stranger> {
public:
  /// @param says empty: nothing
  stranger(asio::io_context& system, std::string says, std::size_t& served)
    : socket_(system), says_(std::move(says)), served_(served) {}

  void begin(const dashboard_place& place) {
    socket_.async_connect({asio::ip::address_v4::loopback(), place.port},
                          [me = shared_from_this()](auto failed) {
                            if (!failed && !me->says_.empty())
                              me->ask();
                          });
  }
  void close() {
    boost::system::error_code ignored;
    socket_.close(ignored);
  }

private:
  void ask() {
    asio::async_write(socket_, asio::buffer(says_),
                      [me = shared_from_this()](auto failed, std::size_t) {
                        if (!failed && me->says_.ends_with("\r\n\r\n"))
                          me->wait();
                      });
  }
  void wait() {
    asio::async_read(socket_, asio::dynamic_buffer(answer_),
                     [me = shared_from_this()](auto, std::size_t) {
                       me->served_ += me->answer_.starts_with("HTTP/1.1 200");
                     });
  }

  tcp::socket socket_;
  std::string says_, answer_;
  std::size_t& served_;
};

/// So many connections, evenly over the time, whether or not the server takes
/// them as fast: those that were begun first are given up. Of four, one says
/// nothing, two say nonsense, and one asks as it should.
void crowd(const dashboard_place& place, std::size_t clients, double seconds) {
  constexpr std::size_t most_at_a_time = 900; // of 1,024 files
  asio::io_context system;
  const std::array<std::string, 4> words{
    "", "GET / HTTP", "\r\r\r",
    "GET /api/v1/state HTTP/1.1\r\nHost: " + place.host()
      + "\r\nAuthorization: " + place.bearer()
      + "\r\nConnection: close\r\n\r\n"};
  std::deque<std::weak_ptr<stranger>> all;
  std::size_t served = 0, given_up = 0, i = 0;
  const auto begin = std::chrono::steady_clock::now();
  const auto when = [&](std::size_t number) {
    return begin
           + std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::duration<double>(seconds * static_cast<double>(number)
                                           / static_cast<double>(clients)));
  };
  for (; i < clients; ++i) {
    // Evenly: all at once would measure how fast this client is.
    system.run_until(when(i));
    system.restart();
    std::this_thread::sleep_until(when(i)); // there was nothing to do
    while (!all.empty() && all.front().expired())
      all.pop_front();
    if (all.size() == most_at_a_time) {
      if (const auto oldest = all.front().lock()) {
        oldest->close();
        ++given_up;
      }
      all.pop_front();
    }
    const auto one = std::make_shared<stranger>(system, words[i % 4], served);
    one->begin(place);
    all.push_back(one);
  }
  system.run_until(end_after(0.1));
  std::printf("{\"connections\": %zu, \"served\": %zu, \"given_up\": %zu}\n", i,
              served, given_up);
}

/// Takes connections in a thread of its own and closes them at once: the least
/// that a server does with a stranger.
class closing_listener {
public:
  closing_listener() {
    accept();
    thread_ = std::thread{[this] { system_.run(); }};
  }
  ~closing_listener() {
    system_.stop();
    thread_.join();
  }
  closing_listener(const closing_listener&) = delete;
  closing_listener& operator=(const closing_listener&) = delete;

  std::uint16_t port() const { return listener_.local_endpoint().port(); }

private:
  void accept() {
    listener_.async_accept([this](auto failed, tcp::socket) {
      if (failed != asio::error::operation_aborted)
        accept();
    });
  }

  asio::io_context system_;
  tcp::acceptor listener_{system_, {asio::ip::address_v4::loopback(), 0}};
  std::thread thread_;
};

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
  bool watches = false, are_elsewhere = false;
  std::size_t stalled = 0, strangers = 0;
  double seconds = 3;
  app.add_option("PORT", place.port, "of the dashboard")->required();
  app.add_option("SECRET", secret, "its token file")->required();
  app.add_option("--seconds", seconds, "how long");
  auto* kinds = app.add_option_group("kind");
  kinds->add_flag("--watch", watches, "one that reads frames as they come");
  kinds->add_option("--stalled", stalled, "so many that read nothing");
  kinds->add_option("--strangers", strangers,
                    "so many within the time, most with nonsense");
  kinds->require_option(1);
  app
    .add_flag("--elsewhere", are_elsewhere,
              "the strangers go to a listener of this program, not to the "
              "dashboard")
    ->needs("--strangers");
  CLI11_PARSE(app, argc, argv);
  try {
    place.secret = secret_in(secret);
    std::optional<closing_listener> elsewhere;
    if (are_elsewhere)
      place.port = elsewhere.emplace().port();
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

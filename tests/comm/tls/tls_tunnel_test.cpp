// SPDX-License-Identifier: Apache-2.0
#include "parties.hpp"

#include <troupe/comm/tls/tls_tunnel.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/ioctl.h>

#include <chrono>
#include <cstddef>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace tls_test;
using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

TEST_SUITE("comm.tls.tunnel") {

namespace {

constexpr auto patience = 10s; // for what should come at once

/// A tunnel to a peer that the test drives by hand.
struct tunnel_to_party {
  explicit tunnel_to_party(socket_pair sockets = tcp_pair())
    : tunnel_to_party(couple{std::move(sockets)}) {}
  explicit tunnel_to_party(couple made)
    : peer(std::move(made.server)),
      tunnel(std::make_unique<tls_tunnel>(std::move(made.client.socket),
                                          std::move(made.client.session))),
      inner(tunnel->take_inner()) {}

  party peer;
  std::unique_ptr<tls_tunnel> tunnel;
  descriptor inner;
};

/// Two tunnels with a connection over TCP between them.
struct two_tunnels {
  explicit two_tunnels(couple made = couple{tcp_pair()})
    : one(std::make_unique<tls_tunnel>(std::move(made.client.socket),
                                       std::move(made.client.session))),
      other(std::make_unique<tls_tunnel>(std::move(made.server.socket),
                                         std::move(made.server.session))),
      inner_one(one->take_inner()), inner_other(other->take_inner()) {}

  std::unique_ptr<tls_tunnel> one, other;
  descriptor inner_one, inner_other;
};

/// Writes all; false if nobody takes it.
bool send_all(const descriptor& to, std::string_view text) {
  while (!text.empty()) {
    const auto n = ::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (n <= 0)
      return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

/// Reads up to the end.
std::string receive_all(const descriptor& from) {
  std::string got;
  std::vector<char> some(100'000);
  while (becomes_ready(from.get(), POLLIN, patience)) {
    const auto n = ::recv(from.get(), some.data(), some.size(), 0);
    if (n <= 0)
      return got;
    got.append(some.data(), static_cast<std::size_t>(n));
  }
  FAIL_CHECK("the connection does not end");
  return got;
}

std::string receive(const descriptor& from, std::size_t size) {
  std::string got(size, '\0');
  REQUIRE(becomes_ready(from.get(), POLLIN, patience));
  REQUIRE(::recv(from.get(), got.data(), size, MSG_WAITALL)
          == static_cast<ssize_t>(size));
  return got;
}

/// Writes until nothing more is taken for a while. Returns the bytes.
std::size_t fill(const descriptor& to) {
  const std::string text(1 << 16, 'x');
  std::size_t sent = 0;
  while (becomes_ready(to.get(), POLLOUT, 30ms)) {
    const auto n =
      ::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    sent += n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  return sent;
}

/// True if all bytes reach the system at the other end.
bool has_left(const descriptor& from) {
  const auto until = clock_type::now() + patience;
  for (int waiting = 1; waiting > 0; std::this_thread::sleep_for(1ms))
    if (::ioctl(from.get(), TIOCOUTQ, &waiting) != 0
        || clock_type::now() > until)
      return false;
  return true;
}

std::ptrdiff_t entries_of(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder),
                       std::filesystem::directory_iterator());
}

std::ptrdiff_t descriptors() {
  return entries_of("/proc/self/fd");
}

/// The system removes a thread soon after it was joined.
bool threads_become(std::ptrdiff_t number) {
  const auto until = clock_type::now() + patience;
  while (entries_of("/proc/self/task") != number)
    if (clock_type::now() > until)
      return false;
  return true;
}

/// Time that this process computes while it has nothing to do.
std::chrono::nanoseconds cpu_time_of_waiting() {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::chrono::seconds{time.tv_sec}
           + std::chrono::nanoseconds{time.tv_nsec};
  };
  const auto begin = now();
  std::this_thread::sleep_for(60ms);
  return now() - begin;
}

/// True once this process computes little. On a busy machine, what came before
/// the waiting takes a while; who computes instead of waiting goes on forever.
bool comes_to_rest() {
  for (int i = 0; i < 200; ++i)
    if (cpu_time_of_waiting() < 20ms)
      return true;
  return false;
}

} // namespace

TEST_CASE("ten MB pass in both directions at once") {
  const auto text = random_text(10'000'000), back = random_text(10'000'000, 2);
  two_tunnels both;
  std::jthread sends{[&] {
    send_all(both.inner_one, text);
    ::shutdown(both.inner_one.get(), SHUT_WR);
  }};
  std::jthread sends_back{[&] {
    send_all(both.inner_other, back);
    ::shutdown(both.inner_other.get(), SHUT_WR);
  }};
  std::string got_back;
  std::jthread receives{[&] { got_back = receive_all(both.inner_one); }};
  CHECK((receive_all(both.inner_other) == text));
  receives.join();
  CHECK((got_back == back));
}

TEST_CASE("small messages pass at once") {
  two_tunnels both;
  const auto begin = clock_type::now();
  for (int i = 0; i < 100; ++i) {
    for (const std::string word : {"this", "is", "a", "question"}) {
      send_text(both.inner_one, word);
      CHECK(receive(both.inner_other, word.size()) == word);
    }
    send_text(both.inner_other, "answer");
    CHECK(receive(both.inner_one, 6) == "answer");
  }
  CHECK(clock_type::now() - begin < 2s); // 40 ms each would be 4 s
}

TEST_CASE("bytes that came before the tunnel pass") {
  couple made{tcp_pair()};
  const auto text = random_text(50'000);
  made.server.write("knock" + text);
  CHECK(made.client.read(5) == "knock"); // the rest of its record stays
  tunnel_to_party to{std::move(made)};
  CHECK((receive(to.inner, text.size()) == text));
}

TEST_CASE(
  "an end is passed on after the bytes, and the other direction stays") {
  two_tunnels both;
  const auto text = random_text(300'000);
  std::jthread sends{[&] {
    send_all(both.inner_one, text);
    ::shutdown(both.inner_one.get(), SHUT_WR);
  }};
  CHECK((receive_all(both.inner_other) == text));
  send_text(both.inner_other, "still there");
  CHECK(receive(both.inner_one, 11) == "still there");
  both.inner_other = descriptor{};
  CHECK(receive_all(both.inner_one).empty());
}

TEST_CASE("the end of the peer is passed on, too") {
  tunnel_to_party to;
  to.peer.write("last words");
  to.peer.session.close();
  CHECK(receive_all(to.inner) == "last words");
  send_text(to.inner, "goodbye");
  CHECK(to.peer.read(7) == "goodbye");
  to.inner = descriptor{};
  CHECK(to.peer.read(1).empty()); // the end is told
  char byte = 0;                  // and the socket closed
  CHECK(becomes_ready(to.peer.socket.get(), POLLIN, patience));
  CHECK(::recv(to.peer.socket.get(), &byte, 1, 0) == 0);
}

TEST_CASE("all bytes pass if the plain end is closed at once") {
  two_tunnels both;
  const auto text = random_text(5'000'000);
  // The other direction is busy: its bytes must not break the connection.
  std::jthread disturbs{
    [&] { send_all(both.inner_other, random_text(1'000'000)); }};
  std::jthread sends{[&] {
    send_all(both.inner_one, text);
    both.inner_one = descriptor{};
  }};
  CHECK((receive_all(both.inner_other) == text));
}

TEST_CASE("a peer that is gone is an end, after its bytes") {
  tunnel_to_party to;
  const auto text = random_text(100'000);
  to.peer.write(text);
  to.peer.socket = descriptor{}; // without a word
  CHECK((receive_all(to.inner) == text));
  CHECK(!send_all(to.inner, random_text(10'000'000)));
}

TEST_CASE("a connection that breaks is an end") {
  tunnel_to_party to;
  const linger at_once{1, 0}; // closing resets the connection
  ::setsockopt(to.peer.socket.get(), SOL_SOCKET, SO_LINGER, &at_once,
               sizeof at_once);
  to.peer.socket = descriptor{};
  CHECK(receive_all(to.inner).empty());
}

TEST_CASE("bytes that are not genuine are an end") {
  tunnel_to_party to;
  to.peer.write("genuine");
  send_text(to.peer.socket, random_text(1000));
  CHECK(receive_all(to.inner) == "genuine");
}

TEST_CASE("what a peer sent arrives although it is gone and takes nothing") {
  tunnel_to_party to;
  to.peer.write("last words");
  fill(to.inner); // these bytes break the connection when the peer closes
  to.peer.socket = descriptor{};
  CHECK(receive_all(to.inner) == "last words");
}

TEST_CASE("what had come but not passed arrives although writes fail") {
  auto sockets = tcp_pair();
  const int size = 400'000; // more than the plain socket and the tunnel hold
  ::setsockopt(sockets.other.get(), SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  tunnel_to_party to{std::move(sockets)};
  const auto text = random_text(280'000);
  to.peer.write(text);
  fill(to.inner);
  REQUIRE(has_left(to.peer.socket));
  to.peer.socket = descriptor{};
  std::this_thread::sleep_for(20ms); // the tunnel's writes fail
  CHECK((receive_all(to.inner) == text));
}

TEST_CASE("what comes after the plain end was closed is dropped") {
  tunnel_to_party to;
  to.inner = descriptor{};
  CHECK(to.peer.read(1).empty());
  to.peer.write(random_text(5'000'000));
  to.peer.session.close();
  char byte = 0;
  CHECK(becomes_ready(to.peer.socket.get(), POLLIN, patience));
  CHECK(::recv(to.peer.socket.get(), &byte, 1, 0) == 0);
}

TEST_CASE("a tunnel ends at once although its peer does not read") {
  tunnel_to_party to;
  CHECK(fill(to.inner) > 64 * 1024);
  const auto begin = clock_type::now();
  to.tunnel.reset();
  CHECK(clock_type::now() - begin < 1s);
  CHECK(receive_all(to.inner).empty());
}

TEST_CASE("a tunnel ends at once although nobody reads from it") {
  tunnel_to_party to;
  const std::string text(1 << 16, 'x');
  auto last = to.peer.session.write(bytes_of(text));
  while (last.waits == wish::nothing
         || becomes_ready(to.peer.socket.get(), POLLOUT, 30ms))
    last = to.peer.session.write(bytes_of(text));
  const auto begin = clock_type::now();
  to.tunnel.reset();
  CHECK(clock_type::now() - begin < 1s);
}

TEST_CASE("a tunnel whose plain end nobody took ends") {
  couple made{tcp_pair()};
  const tls_tunnel unused{std::move(made.client.socket),
                          std::move(made.client.session)};
}

TEST_CASE("the plain end is a blocking socket that no program inherits") {
  tunnel_to_party to;
  CHECK((::fcntl(to.inner.get(), F_GETFL) & O_NONBLOCK) == 0);
  CHECK((::fcntl(to.inner.get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("bytes that nobody takes hold up the other side") {
  two_tunnels both;
  const auto sent = fill(both.inner_one);
  CHECK(sent < 100'000'000);
  CHECK((receive(both.inner_other, sent) == std::string(sent, 'x')));
}

TEST_CASE("a tunnel that waits computes nothing") {
  tunnel_to_party to;
  CHECK(comes_to_rest());
  SUBCASE("for a peer that does not read") {
    fill(to.inner);
    CHECK(comes_to_rest());
    to.inner = descriptor{};
    CHECK(comes_to_rest());
  }
  SUBCASE("for a peer that neither reads nor is done with sending") {
    to.peer.write("not taken");
    fill(to.inner);
    ::shutdown(to.inner.get(), SHUT_WR);
    CHECK(comes_to_rest());
  }
  SUBCASE("for the end of one direction") {
    ::shutdown(to.inner.get(), SHUT_WR);
    CHECK(to.peer.read(1).empty());
    CHECK(comes_to_rest());
    to.inner = descriptor{};
    CHECK(comes_to_rest());
  }
  SUBCASE("for the end of the other direction") {
    to.peer.session.close();
    CHECK(receive_all(to.inner).empty());
    CHECK(comes_to_rest());
  }
  SUBCASE("for a plain end that takes nothing from a peer that is gone") {
    const std::string text(1 << 16, 'x');
    while (becomes_ready(to.peer.socket.get(), POLLOUT, 30ms))
      to.peer.session.write(bytes_of(text));
    to.peer.socket = descriptor{};
    CHECK(comes_to_rest());
  }
}

TEST_CASE("many tunnels leave nothing behind") {
  { const two_tunnels first; } // what OpenSSL keeps is there now
  const auto descriptors_before = descriptors();
  const auto threads_before = entries_of("/proc/self/task");
  {
    std::vector<two_tunnels> all(16);
    CHECK(entries_of("/proc/self/task") == threads_before + 32);
    for (std::size_t i = 0; i < all.size(); ++i)
      send_text(all[i].inner_one, std::to_string(100 + i));
    for (std::size_t i = 0; i < all.size(); ++i)
      CHECK(receive(all[i].inner_other, 3) == std::to_string(100 + i));
    for (std::size_t i = 0; i < all.size(); i += 2)
      all[i].inner_one = descriptor{};
  }
  CHECK(threads_become(threads_before));
  CHECK(descriptors() == descriptors_before);
}

TEST_CASE("tunnels that have ended hold no sockets") {
  const auto before = descriptors();
  {
    two_tunnels both;
    both.inner_one = descriptor{};
    CHECK(receive_all(both.inner_other).empty());
    both.inner_other = descriptor{};
    const auto until = clock_type::now() + patience;
    while (descriptors() > before + 2 && clock_type::now() < until)
      std::this_thread::sleep_for(1ms);
    CHECK(descriptors() == before + 2); // events of the two destructors
  }
  CHECK(descriptors() == before);
}

TEST_CASE("what the plain end has given still goes when the tunnel ends") {
  const std::string text(40'000, 'l');
  for (int time = 0; time < 20; ++time) {
    two_tunnels at;
    REQUIRE(send_all(at.inner_one, text));
    at.one.reset();
    CHECK(receive_all(at.inner_other) == text);
  }
}

TEST_CASE("the end of a tunnel is waited for, but not for ever") {
  two_tunnels at;
  at.other->wait_for_end(1ms); // it goes on
  REQUIRE(send_all(at.inner_one, "x"));
  CHECK(receive(at.inner_other, 1) == "x");
  at.one.reset();
  CHECK(receive_all(at.inner_other).empty());
  at.inner_other = descriptor{};
  const auto begin = clock_type::now();
  at.other->wait_for_end(60s);
  CHECK(clock_type::now() - begin < 30s);
}

} // TEST_SUITE("comm.tls.tunnel")

// SPDX-License-Identifier: Apache-2.0
#include "stranger.hpp"

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace tls_test;
using namespace std::chrono_literals;
using troupe::test::caught;

TEST_SUITE("comm.tls.session") {

namespace {

std::string failure_of_read(party& reads) {
  return caught([&] { reads.read(1); }).message();
}

std::string failure_of_write(party& writes) {
  return caught([&] {
           const std::string text(1 << 16, 'x');
           for (;;)
             writes.write(text);
         })
    .message();
}

} // namespace

TEST_CASE("bytes pass in both directions") {
  couple both{local_pair()};
  for (const std::size_t size : {1, 32, 1000, 16384, 16385, 100000}) {
    const auto text = random_text(size), back = random_text(size, 2);
    both.client.write(text);
    CHECK(both.server.read(size) == text);
    both.server.write(back);
    CHECK(both.client.read(size) == back);
  }
  CHECK(both.client.session.read({}).bytes == 0);
  CHECK(both.client.session.write({}).bytes == 0);
}

TEST_CASE("read and write say what they wait for") {
  couple both{local_pair()};
  std::vector<std::byte> bytes(1 << 16);
  CHECK(both.server.session.read(bytes).waits == wish::to_read);
  std::size_t sent = 0;
  auto last = both.server.session.write(bytes);
  for (; last.waits == wish::nothing; last = both.server.session.write(bytes))
    sent += last.bytes;
  CHECK(last.waits == wish::to_write);
  CHECK(last.bytes == 0);
  CHECK(both.client.read(sent).size() == sent);
  CHECK(both.server.session.write(bytes).bytes > 0);
}

TEST_CASE("a session can be moved between calls") {
  couple both{local_pair()};
  auto moved = std::move(both.server.session);
  CHECK(moved.write(bytes_of("moved")).bytes == 5);
  both.server.session = std::move(moved);
  CHECK(both.client.read(5) == "moved");
  both.client.write("back");
  CHECK(both.server.read(4) == "back");
}

TEST_CASE("nothing to resume is sent") {
  couple both{local_pair()};
  char byte = 0;
  for (auto* end : {&both.server, &both.client})
    CHECK(::recv(end->socket.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) == -1);
}

TEST_CASE("a side that has closed can still read") {
  couple both{local_pair()};
  both.client.write("last words");
  CHECK(both.client.session.close() == wish::nothing);
  CHECK(both.client.session.close() == wish::nothing);
  CHECK(both.server.read(100) == "last words"); // and the end
  both.server.write("goodbye");
  CHECK(both.client.read(7) == "goodbye");
  both.server.session.close();
  CHECK(both.client.read(1).empty());
}

TEST_CASE("close waits if the socket is full") {
  couple both{local_pair()};
  std::vector<char> filling(1 << 14);
  std::size_t sent = 0;
  for (ssize_t n = 0; n >= 0; sent += n > 0 ? std::size_t(n) : 0)
    n = ::send(both.server.socket.get(), filling.data(), filling.size(),
               MSG_DONTWAIT | MSG_NOSIGNAL);
  CHECK(both.server.session.close() == wish::to_write);
  CHECK(both.server.session.close() == wish::to_write);
  // TLS does not get to see these bytes.
  filling.resize(sent);
  CHECK(::recv(both.client.socket.get(), filling.data(), sent, MSG_WAITALL)
        == static_cast<ssize_t>(sent));
  CHECK(both.server.session.close() == wish::nothing);
  CHECK(both.client.read(1).empty());
}

TEST_CASE("an end that was not told is a failure") {
  for (auto make : {local_pair, tcp_pair}) {
    couple both{make()};
    both.client.write("cut");
    both.client.socket = descriptor{};
    CHECK(both.server.read(3) == "cut");
    CHECK(failure_of_read(both.server) == "it has closed the connection");
  }
}

TEST_CASE("a write to a closed connection is a failure, and no signal") {
  for (auto make : {local_pair, tcp_pair}) {
    couple both{make()};
    both.client.socket = descriptor{};
    CHECK(failure_of_write(both.server) == "it has closed the connection");
  }
}

TEST_CASE("changed bytes are a failure") {
  couple both{local_pair()};
  auto relay = local_pair();
  // The client writes elsewhere; what comes there goes on with one other bit.
  const descriptor kept{::dup(both.client.socket.get())};
  REQUIRE(::dup2(relay.one.get(), both.client.socket.get()) >= 0);
  both.client.write("genuine bytes");
  std::string record(100, '\0');
  const auto size = ::recv(relay.other.get(), record.data(), record.size(), 0);
  REQUIRE(size > 20);
  record.resize(static_cast<std::size_t>(size));
  record[10] ^= 1;
  send_text(kept, record);
  CHECK(failure_of_read(both.server) == "its bytes are not genuine");
}

TEST_CASE("bytes that are no TLS are a failure after the handshake, too") {
  couple both{local_pair()};
  send_text(both.client.socket, "GET / HTTP/1.1\r\n\r\n");
  CHECK(caught([&] { both.server.read(1); }).code() == errc::peer_failure);
}

TEST_CASE("a refused client hears why when it reads or writes") {
  // The server refuses what the client shows after the client's handshake.
  const hand_made_authority authority;
  const auto server_own = authority.credentials({"process 0"});
  const auto client_own =
    authority.credentials({"process 1"}, -48h, -24h); // expired
  for (auto make : {local_pair, tcp_pair})
    for (const auto writes : {false, true}) {
      auto sockets = make();
      party server{server_own, side::server, std::move(sockets.one)};
      party client{client_own, side::client, std::move(sockets.other)};
      shake_hands(client, server);
      REQUIRE(client.has_shaken);
      client.write("knock"); // which nobody reads
      REQUIRE(server.failure);
      server.socket = descriptor{};
      CHECK((writes ? failure_of_write(client) : failure_of_read(client))
            == "it does not accept the certificate of this process: it has "
               "expired");
    }
}

} // TEST_SUITE("comm.tls.session")

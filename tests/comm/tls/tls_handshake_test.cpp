// SPDX-License-Identifier: Apache-2.0
#include "stranger.hpp"

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace tls_test;
using namespace std::chrono_literals;
using troupe::test::caught;
using troupe::test::says;

TEST_SUITE("comm.tls.handshake") {

namespace {

/// What a server of the job finds wrong with what comes.
error failure_of_server(socket_pair& sockets, const tls_identity& own) {
  party server{own, side::server, std::move(sockets.one)};
  for (int turn = 0; turn < 1000 && !server.failure; ++turn)
    server.go_on();
  REQUIRE(server.failure);
  return *server.failure;
}

/// The same of a peer that sends this and then ends the connection, or not.
error failure_after(std::string_view text, bool ends) {
  auto sockets = local_pair();
  send_text(sockets.other, text);
  if (ends)
    sockets.other = descriptor{};
  return failure_of_server(sockets, job()[0]);
}

struct refused {
  std::string by_server; ///< what the server finds wrong
  std::string told;      ///< what the stranger hears of it
};

/// A client that shows this to a server of the job.
refused refuse(stranger& client, const tls_identity& own, descriptor socket) {
  party server{own, side::server, std::move(socket)};
  shake_hands(client, server);
  REQUIRE(server.failure);
  CHECK(server.failure->code() == errc::peer_failure);
  return {server.failure->message(), client.refusal()};
}

refused refuse(const tls_identity& server, const job_credentials& shown) {
  auto sockets = local_pair();
  stranger client{side::client, std::move(sockets.other)};
  client.show(shown);
  return refuse(client, server, std::move(sockets.one));
}

/// A handshake of two processes of which the client refuses the server.
refused refuse_server(const tls_identity& client_own,
                      const tls_identity& server_own) {
  auto sockets = local_pair();
  party client{client_own, side::client, std::move(sockets.one)};
  party server{server_own, side::server, std::move(sockets.other)};
  shake_hands(client, server);
  REQUIRE(client.failure);
  REQUIRE(server.failure);
  CHECK(client.failure->code() == errc::peer_failure);
  CHECK(server.failure->code() == errc::peer_failure);
  return {client.failure->message(), server.failure->message()};
}

/// The first message of a client.
std::string hello_of_client() {
  auto sockets = local_pair();
  party client{job()[1], side::client, std::move(sockets.one)};
  client.go_on();
  std::string hello(4096, '\0');
  const auto got =
    ::recv(sockets.other.get(), hello.data(), hello.size(), MSG_DONTWAIT);
  REQUIRE(got > 0);
  hello.resize(static_cast<std::size_t>(got));
  return hello;
}

/// Passes one byte on. False if there is none.
bool pass_byte(const descriptor& from, const descriptor& to) {
  char byte = 0;
  if (::recv(from.get(), &byte, 1, MSG_DONTWAIT) != 1)
    return false;
  send_text(to, {&byte, 1});
  return true;
}

} // namespace

TEST_CASE("two processes of a job learn each other's number") {
  const auto all = make_job_credentials(12);
  for (const auto& [server_number, client_number] :
       {std::pair{0, 1}, std::pair{0, 11}, std::pair{7, 0}, std::pair{3, 3}}) {
    auto sockets = local_pair();
    party server{all[std::size_t(server_number)], side::server,
                 std::move(sockets.one)};
    party client{all[std::size_t(client_number)], side::client,
                 std::move(sockets.other)};
    shake_hands(client, server);
    REQUIRE(server.has_shaken);
    REQUIRE(client.has_shaken);
    CHECK(server.session.peer() == std::size_t(client_number));
    CHECK(client.session.peer() == std::size_t(server_number));
  }
}

TEST_CASE("one identity serves many connections at once") {
  const tls_identity server_own{job()[0]}, client_own{job()[1]};
  std::vector<party> servers, clients;
  for (int i = 0; i < 16; ++i) {
    auto sockets = local_pair();
    servers.emplace_back(server_own, side::server, std::move(sockets.one));
    clients.emplace_back(client_own, side::client, std::move(sockets.other));
  }
  for (int turn = 0; turn < 10; ++turn)
    for (std::size_t i = 0; i < servers.size(); ++i) {
      clients[i].go_on();
      servers[servers.size() - 1 - i].go_on();
    }
  for (std::size_t i = 0; i < servers.size(); ++i) {
    REQUIRE(servers[i].has_shaken);
    clients[i].write(std::to_string(i));
    CHECK(servers[i].read(std::to_string(i).size()) == std::to_string(i));
  }
}

TEST_CASE("a server waits for a client, and a client for an answer") {
  auto sockets = local_pair();
  tls_session server{job()[0], side::server, sockets.one.get()};
  tls_session client{job()[1], side::client, sockets.other.get()};
  CHECK(server.shake_hands() == wish::to_read);
  CHECK(client.shake_hands() == wish::to_read);
  CHECK(client.shake_hands() == wish::to_read);
}

TEST_CASE("bytes may come one by one") {
  auto near_client = local_pair(), near_server = local_pair();
  party server{job()[0], side::server, std::move(near_server.one)};
  party client{job()[1], side::client, std::move(near_client.one)};
  client.go_on();
  int passed = 0;
  for (bool moved = true; moved; passed += moved) {
    moved = pass_byte(near_client.other, near_server.other);
    if (moved)
      server.go_on();
    else {
      moved = pass_byte(near_server.other, near_client.other);
      if (moved)
        client.go_on();
    }
  }
  CHECK(server.has_shaken);
  CHECK(client.has_shaken);
  CHECK(passed > 1000);
}

TEST_CASE("credentials that cannot be used are refused at once") {
  const auto good = job()[0];
  const auto other_job = make_job_credentials(1)[0];
  const auto wrong = [&](auto change) {
    auto own = good;
    change(own);
    const auto e = caught([&] { tls_identity{own}; });
    CHECK(e.code() == errc::bad_file);
    return e;
  };
  CHECK(says(wrong([](auto& own) { own.key = job()[1].key; }),
             "the private key is of another certificate"));
  CHECK(says(wrong([&](auto& own) { own.authority = other_job.authority; }),
             "the certificate is of another job"));
  CHECK(says(wrong([](auto& own) { own.authority.clear(); }),
             "no certificate of the job"));
  CHECK(says(wrong([](auto& own) { own.certificate = "x"; }),
             "no certificate of the process"));
  CHECK(says(wrong([](auto& own) { own.key = own.certificate; }),
             "no private key"));
  CHECK(says(
    caught([] { tls_identity{hand_made_authority{}.credentials({"a host"})}; }),
    "the certificate names no process"));
}

TEST_CASE("a server of another job is refused, and hears why") {
  const auto [by_client, told] =
    refuse_server(job()[1], make_job_credentials(1)[0]);
  CHECK(by_client == "its certificate is of another job");
  CHECK(told
        == "it does not accept the certificate of this process: it is of "
           "another job");
}

TEST_CASE("a client of another job is refused, and hears why") {
  const auto [by_server, told] = refuse(job()[0], make_job_credentials(2)[1]);
  CHECK(by_server == "its certificate is of another job");
  CHECK(told == "tlsv1 alert unknown ca");
}

TEST_CASE("a foreign authority that is shown changes nothing") {
  const auto other = make_job_credentials(2);
  auto sockets = local_pair();
  stranger client{side::client, std::move(sockets.other)};
  client.show(other[1]);
  client.show_too(other[1].authority);
  CHECK(refuse(client, job()[0], std::move(sockets.one)).by_server
        == "its certificate is of another job");
}

TEST_CASE("an expired certificate is refused") {
  for (const auto lifetime : {0h, -2h}) {
    const auto old = make_job_credentials(2, lifetime);
    const auto [by_client, told] = refuse_server(old[1], old[0]);
    CHECK(by_client == "its certificate has expired");
    CHECK(told
          == "it does not accept the certificate of this process: it has "
             "expired");
    CHECK(refuse(old[0], old[1]).by_server == "its certificate has expired");
  }
}

TEST_CASE("a certificate of the future is refused") {
  const hand_made_authority authority;
  const auto own = authority.credentials({"process 0"});
  const auto early = authority.credentials({"process 1"}, 2h, 4h);
  CHECK(refuse(own, early).by_server
        == "its certificate is not yet valid (do the clocks differ?)");
  const auto [by_client, told] = refuse_server(own, early);
  CHECK(by_client
        == "its certificate is not yet valid (do the clocks differ?)");
  CHECK(told
        == "it does not accept the certificate of this process: bad "
           "certificate");
}

TEST_CASE("clocks may differ by almost an hour") {
  // As if the certificates had been made at a clock that is ahead.
  const hand_made_authority authority;
  auto sockets = local_pair();
  party server{authority.credentials({"process 0"}, -1h, 1h), side::server,
               std::move(sockets.one)};
  party client{authority.credentials({"process 1"}, 0h, 1h), side::client,
               std::move(sockets.other)};
  shake_hands(client, server);
  CHECK(server.has_shaken);
}

TEST_CASE("a client without a certificate is refused") {
  auto sockets = local_pair();
  stranger client{side::client, std::move(sockets.other)};
  const auto [by_server, told] =
    refuse(client, job()[0], std::move(sockets.one));
  CHECK(by_server == "it shows no certificate");
  CHECK(told == "tlsv13 alert certificate required");
}

TEST_CASE("a certificate must name a process, and nothing else") {
  const hand_made_authority authority;
  const auto own = authority.credentials({"process 0"});
  using names = std::vector<std::string>;
  for (const auto& wrong :
       {names{}, names{"process"}, names{"process "}, names{"process 01"},
        names{"process -1"}, names{"process +1"}, names{"process 1 "},
        names{"process  1"}, names{"Process 1"}, names{"process 0x1"},
        names{"process 99999999999999999999"}, names{"1"},
        names{"process 1", "process 1"}, names{"process 1", "process 0"}})
    CHECK(refuse(own, authority.credentials(wrong)).by_server
          == "its certificate names no process");
}

TEST_CASE("a process cannot sign certificates itself") {
  // Its certificate and key in the place of the authority's.
  auto sockets = local_pair();
  stranger client{side::client, std::move(sockets.other)};
  client.show(hand_made_authority{job()[1]}.credentials({"process 0"}));
  client.show_too(job()[1].certificate);
  const auto by_server =
    refuse(client, job()[0], std::move(sockets.one)).by_server;
  CHECK(by_server.starts_with("its certificate is not accepted: "));
}

TEST_CASE("a chain of certificates beyond 16 KiB is not read") {
  auto sockets = tcp_pair();
  const int yes = 1; // what is sent is there at once
  ::setsockopt(sockets.other.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  stranger client{side::client, std::move(sockets.other)};
  client.show(job()[1]);
  for (int i = 0; i < 60; ++i)
    client.show_too(job()[1].authority);
  CHECK(refuse(client, job()[0], std::move(sockets.one)).by_server
        == "it breaks the rules of TLS: excessive message size");
}

TEST_CASE("older versions of TLS are refused") {
  auto sockets = local_pair();
  stranger client{side::client, std::move(sockets.other), TLS1_2_VERSION};
  client.show(job()[1]);
  const auto [by_server, told] =
    refuse(client, job()[0], std::move(sockets.one));
  CHECK(by_server == "it does not offer TLS 1.3");
  CHECK(told == "tlsv1 alert protocol version");

  auto others = local_pair();
  stranger server{side::server, std::move(others.other), TLS1_2_VERSION};
  server.show(job()[0]);
  party own{job()[1], side::client, std::move(others.one)};
  shake_hands(own, server);
  REQUIRE(own.failure);
  CHECK(own.failure->message() == "it does not accept TLS 1.3");
}

TEST_CASE("a peer that speaks no TLS is told apart") {
  for (const auto ends : {false, true})
    for (const auto& text :
         {std::string{"GET / HTTP/1.1\r\n\r\n"},
          std::string{"CONNECT a:1 HTTP/1.1\r\n\r\n"},
          std::string{"SSH-2.0-OpenSSH_9.2p1\r\n"}, std::string(40, '\0'),
          random_text(4096), "\x16\x02" + std::string(40, '\1'),
          "\x19\x03" + std::string(40, '\1')})
      CHECK(failure_after(text, ends).message() == "it speaks no TLS");
  auto sockets = local_pair();
  party client{job()[1], side::client, std::move(sockets.one)};
  client.go_on();
  send_text(sockets.other, "HTTP/1.1 400 Bad Request\r\n\r\n");
  client.go_on();
  REQUIRE(client.failure);
  CHECK(client.failure->message() == "it speaks no TLS");
}

TEST_CASE("a MiB of garbage is refused soon") {
  const auto garbage = random_text(1 << 20);
  for (const std::string_view begin :
       {"", "\x16\x03\x01\x02\x00", "\x16\x03\x01\x40\x00", "\x16\x03\x03",
        "\x17\x03\x03\x40\x00", "\x15\x03\x03\x00\x02",
        "\x80\x80\x01\x03\x03"}) {
    auto sockets = local_pair();
    std::jthread sends{[&, to = std::move(sockets.other)] {
      const auto all = std::string{begin} + garbage;
      ::send(to.get(), all.data(), all.size(), MSG_NOSIGNAL);
    }};
    party server{job()[0], side::server, std::move(sockets.one)};
    while (!server.failure) {
      REQUIRE(becomes_ready(server.socket.get(), POLLIN, 5s));
      server.go_on();
    }
    CHECK(server.failure->code() == errc::peer_failure);
    CHECK(server.failure->message().find('\n') == std::string::npos);
    server.socket = descriptor{};
  }
}

TEST_CASE("a peer that closes in the middle is told apart") {
  const auto hello = hello_of_client();
  for (std::size_t size = 0; size <= hello.size(); ++size)
    REQUIRE(
      failure_after(std::string_view{hello}.substr(0, size), true).message()
      == "it has closed the connection");
  CHECK(failure_after({}, true).code() == errc::peer_failure);
}

TEST_CASE("a peer that closes during the handshake raises no signal") {
  auto sockets = local_pair();
  send_text(sockets.other, hello_of_client());
  ::shutdown(sockets.one.get(), SHUT_WR); // a write fails, a read does not
  CHECK(failure_of_server(sockets, job()[0]).message()
        == "it has closed the connection");
}

TEST_CASE("a connection that is none is an error") {
  party client{job()[1], side::client, descriptor{}};
  client.go_on();
  REQUIRE(client.failure);
  CHECK(client.failure->message()
        == "the connection is broken: Bad file descriptor");
}

} // TEST_SUITE("comm.tls.handshake")

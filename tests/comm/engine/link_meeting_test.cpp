// SPDX-License-Identifier: Apache-2.0
#include "gloo_group.hpp"

#include <troupe/base/net/socket_address.hpp>
#include <troupe/comm/engine/link_meeting.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::comm;
using namespace std::chrono_literals;
using comm_test::meeting_folder;
using troupe::test::caught;
using troupe::test::says;

TEST_SUITE("comm.link_meeting") {

namespace {

link_meeting_options options_of(std::size_t process, std::size_t processes,
                                std::chrono::milliseconds timeout = 10s) {
  return {process,
          processes,
          "127.0.0.1",
          std::chrono::steady_clock::now() + timeout,
          {}};
}

/// A process that meets others.
struct met_process {
  met_process(const meeting_folder& at, std::size_t process,
              std::size_t processes)
    : store(make_folder_store(at.path())),
      options(options_of(process, processes)), meeting(options, *store) {}

  std::shared_ptr<key_store> store;
  link_meeting_options options;
  link_meeting meeting;
  std::vector<descriptor> sockets;
};

/// What a process has published: its secret, its port, its address.
struct published_place {
  explicit published_place(key_store& store, std::size_t process)
    : text(wait_for_key(store, "messages-rank_" + std::to_string(process),
                        std::chrono::steady_clock::now() + 10s, {})) {
    std::memcpy(shows.data(), text.data(), shows.size());
    std::memcpy(&port, text.data() + shows.size(), sizeof port);
  }
  std::vector<char> text;
  secret shows{};
  std::uint16_t port = 0;
};

descriptor call(std::uint16_t port) {
  const auto to = parse_loopback("127.0.0.1", port);
  descriptor made{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  REQUIRE(::connect(made.get(), to.get(), to.size) == 0);
  return made;
}

void show(const descriptor& to, const secret& shown, std::uint64_t process) {
  REQUIRE(::send(to.get(), shown.data(), shown.size(), MSG_NOSIGNAL)
          == static_cast<ssize_t>(shown.size()));
  ::send(to.get(), &process, sizeof process, MSG_NOSIGNAL);
}

bool has_news(const descriptor& by) {
  pollfd one{by.get(), POLLIN, 0};
  return ::poll(&one, 1, 5'000) == 1;
}

/// True if the other side closes the connection without a word.
bool is_dropped(const descriptor& by) {
  std::array<std::byte, 64> come;
  return has_news(by) && ::recv(by.get(), come.data(), come.size(), 0) <= 0;
}

void send_text(const descriptor& by, std::string_view text) {
  CHECK(::send(by.get(), text.data(), text.size(), 0)
        == static_cast<ssize_t>(text.size()));
}

std::string receive_text(const descriptor& by) {
  std::array<char, 64> come;
  const auto n =
    !has_news(by) ? 0 : ::recv(by.get(), come.data(), come.size(), 0);
  return {come.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

} // namespace

TEST_CASE("every two processes have one connection") {
  const meeting_folder at;
  constexpr std::size_t count = 4;
  std::vector<std::unique_ptr<met_process>> all;
  for (std::size_t p = 0; p < count; ++p)
    all.push_back(std::make_unique<met_process>(at, p, count));
  {
    std::vector<std::jthread> threads;
    for (auto& p : all)
      threads.emplace_back([&] { p->sockets = p->meeting.connect_all(); });
  }
  for (std::size_t p = 0; p < count; ++p) {
    REQUIRE(all[p]->sockets.size() == count);
    CHECK(!all[p]->sockets[p]);
    for (std::size_t to = 0; to < count; ++to)
      if (to != p)
        send_text(all[p]->sockets[to],
                  std::to_string(p) + " to " + std::to_string(to));
  }
  for (std::size_t p = 0; p < count; ++p)
    for (std::size_t from = 0; from < count; ++from)
      if (from != p)
        CHECK(receive_text(all[p]->sockets[from])
              == std::to_string(from) + " to " + std::to_string(p));
}

TEST_CASE("strangers are dropped, and disturb nobody") {
  const meeting_folder at;
  met_process zero{at, 0, 3}, one{at, 1, 3}, two{at, 2, 3};
  const published_place place{*zero.store, 0};
  std::jthread zero_meets{[&] { zero.sockets = zero.meeting.connect_all(); }};
  std::vector<descriptor> silent;
  for (int i = 0; i < 80; ++i) // more than are kept
    silent.push_back(call(place.port));
  const auto guesses = call(place.port);
  auto wrong = place.shows;
  wrong.back() ^= std::byte{1};
  show(guesses, wrong, 1);
  CHECK(is_dropped(guesses));
  for (const std::uint64_t impossible : {0u, 3u, ~0u}) {
    const auto who = call(place.port);
    show(who, place.shows, impossible);
    CHECK(is_dropped(who));
  }
  std::jthread one_meets{[&] { one.sockets = one.meeting.connect_all(); }};
  two.sockets = two.meeting.connect_all();
  zero_meets.join();
  one_meets.join();
  send_text(zero.sockets[1], "hello");
  CHECK(receive_text(one.sockets[0]) == "hello");
}

TEST_CASE("who is called must have the secret of the caller, too") {
  const meeting_folder at;
  met_process one{at, 1, 2};
  const descriptor listening{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const auto any = parse_loopback("127.0.0.1", 0);
  REQUIRE(::bind(listening.get(), any.get(), any.size) == 0);
  REQUIRE(::listen(listening.get(), 1) == 0);
  // Process 0 has published this port, and another program has it now.
  auto text = published_place{*one.store, 1}.text;
  const auto port = own_address(listening.get()).port();
  std::memcpy(text.data() + sizeof(secret), &port, sizeof port);
  text.front() = static_cast<char>(text.front() + 1);
  const auto store = make_folder_store(at.path());
  store->publish("messages-rank_0", text);
  std::jthread other_program{[&] {
    const descriptor come{::accept(listening.get(), nullptr, nullptr)};
    show(come, secret{}, 0);
  }};
  const auto e = caught([&] { one.meeting.connect_all(); });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, "process 0 cannot be reached for messages"));
}

TEST_CASE("a process that is gone is named, and so is one that does not come") {
  const meeting_folder at;
  std::vector<char> text;
  {
    met_process zero{at, 0, 2};
    text = published_place{*zero.store, 0}.text;
  }
  const auto store = make_folder_store(at.path());
  store->publish("messages-rank_0", text);
  met_process one{at, 1, 2};
  CHECK(says(caught([&] { one.meeting.connect_all(); }),
             "process 0 cannot be reached for messages, which need all ports "
             "between the hosts: Connection refused"));
  const meeting_folder elsewhere;
  met_process alone{elsewhere, 0, 3}, last{elsewhere, 2, 3};
  alone.options.deadline = last.options.deadline =
    std::chrono::steady_clock::now() + 30ms;
  CHECK(says(caught([&] { alone.meeting.connect_all(); }),
             "did not join in time: 1"));
}

TEST_CASE("a check ends the wait for callers") {
  const meeting_folder at;
  met_process zero{at, 0, 2};
  met_process one{at, 1, 2}; // has published, and does not call
  zero.options.check = [] { throw error(errc::cancelled, "stopped"); };
  CHECK(caught([&] { zero.meeting.connect_all(); }).code() == errc::cancelled);
}

} // TEST_SUITE("comm.link_meeting")

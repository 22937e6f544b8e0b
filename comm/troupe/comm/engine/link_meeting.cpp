// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/engine/link_meeting.hpp>

#include <troupe/base/byte_reader.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/net/socket_address.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <list>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

namespace troupe::comm {

namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto patience_with_callers = 2s;
constexpr auto between_checks = 100ms;
/// Of connections that have shown nothing yet. The oldest one is dropped.
constexpr std::size_t most_callers = 64;

std::string reason(int number) {
  return std::system_category().message(number);
}

std::string key_of(std::size_t process) {
  return "messages-rank_" + std::to_string(process);
}

error not_reached(std::size_t process, const std::string& why) {
  return {errc::peer_failure,
          "process " + std::to_string(process)
            + " cannot be reached for messages, which need all ports between "
              "the hosts: "
            + why};
}

descriptor listen_at(const std::string& host) {
  descriptor made;
  for (const auto& at : addresses_of_host(host, 0)) {
    made = descriptor{::socket(at.get()->sa_family,
                               SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (made && ::bind(made.get(), at.get(), at.size) == 0
        && ::listen(made.get(), SOMAXCONN) == 0)
      return made;
  }
  throw error(errc::io_failure,
              "messages cannot be received at " + host + ": " + reason(errno));
}

} // namespace

/// Published as: the secret, the port, and the address in figures.
struct link_meeting::place {
  socket_address at;
  secret shows;

  static std::string text_of(int listening, const secret& shows) {
    const auto at = own_address(listening);
    std::string text;
    put_bytes(text, shows);
    put_bytes(text, at.port());
    return text + at.figures();
  }

  static place in(std::span<const char> text) {
    byte_reader from{{text.data(), text.size()}, "the place of a process"};
    const auto shows = from.get<secret>();
    const auto port = from.get<std::uint16_t>();
    const std::string host{from.take(from.left())};
    return {addresses_of_host(host, port).front(), shows};
  }
};

struct link_meeting::greeting {
  secret shown;          ///< that of the process to which it is sent
  std::uint64_t process; ///< who sends it
};

struct link_meeting::party {
  descriptor socket;
  std::optional<std::size_t> called = {}; ///< unless the other side called
  clock::time_point until = {};           ///< when it is dropped, if it called
  bool is_connecting = false;
  std::array<std::byte, sizeof(greeting)> come{};
  std::size_t has_come = 0;
};

class link_meeting::calls {
public:
  explicit calls(const link_meeting& of)
    : of_(of), linked_(of.options_.processes) {}

  std::vector<descriptor> run() {
    for (std::size_t p = 0; p < linked_.size(); ++p) {
      places_.push_back(p == own() ? place{} : place_of(p));
      if (p < own())
        call(p);
    }
    while (!missing().empty())
      look();
    return std::move(linked_);
  }

private:
  std::size_t own() const { return of_.options_.process; }

  std::vector<std::size_t> missing() const {
    std::vector<std::size_t> all;
    for (std::size_t p = 0; p < linked_.size(); ++p)
      if (p != own() && !linked_[p])
        all.push_back(p);
    return all;
  }

  place place_of(std::size_t process) const {
    const auto& how = of_.options_;
    return place::in(
      wait_for_key(of_.store_, key_of(process), how.deadline, how.check));
  }

  void call(std::size_t process) {
    const auto& at = places_[process].at;
    party made{
      .socket = descriptor{::socket(
        at.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)},
      .called = process,
      .is_connecting = true};
    if (!made.socket
        || (::connect(made.socket.get(), at.get(), at.size) != 0
            && errno != EINPROGRESS))
      throw not_reached(process, reason(errno));
    parties_.push_back(std::move(made));
  }

  /// Waits until something happens, but not for long, and deals with it.
  void look() {
    std::vector<pollfd> looks{{of_.listening_.get(), POLLIN, 0}};
    for (auto& p : parties_)
      looks.push_back({p.socket.get(),
                       static_cast<short>(p.is_connecting ? POLLOUT : POLLIN),
                       0});
    const auto now = clock::now();
    if (now >= of_.options_.deadline)
      throw late();
    if (of_.options_.check)
      of_.options_.check();
    if (::poll(
          looks.data(), looks.size(),
          static_cast<int>(std::chrono::milliseconds{between_checks}.count()))
        <= 0)
      looks.assign(looks.size(), {});
    auto look = looks.begin() + 1;
    for (auto p = parties_.begin(); p != parties_.end(); ++look) {
      const bool stays = (look->revents == 0 || go_on(*p))
                         && (p->called || clock::now() < p->until);
      p = stays ? std::next(p) : parties_.erase(p);
    }
    if (looks.front().revents != 0)
      accept();
  }

  error late() const {
    std::string names;
    for (const auto p : missing())
      names += (names.empty() ? "" : ", ") + std::to_string(p);
    return {errc::peer_failure,
            "processes that did not join in time: " + names};
  }

  void accept() {
    descriptor socket{::accept4(of_.listening_.get(), nullptr, nullptr,
                                SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (!socket)
      return; // it has given up, or there are too many files: we are waiting
    const auto is_caller = [](const party& p) { return !p.called; };
    if (std::ranges::count_if(parties_, is_caller)
        >= static_cast<std::ptrdiff_t>(most_callers))
      parties_.erase(std::ranges::find_if(parties_, is_caller));
    parties_.push_back({.socket = std::move(socket),
                        .until = clock::now() + patience_with_callers});
  }

  /// False if the connection was used, or is of no use.
  bool go_on(party& p) {
    try {
      return p.is_connecting ? greet(p) : hear(p);
    } catch (const std::system_error& failed) {
      if (!p.called)
        return false;
      throw not_reached(*p.called, failed.code().message());
    }
  }

  /// The connection is made, or has failed.
  bool greet(party& p) {
    int failure = 0;
    socklen_t size = sizeof failure;
    ::getsockopt(p.socket.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure != 0)
      throw std::system_error(failure, std::system_category());
    show(p, *p.called);
    p.is_connecting = false;
    return true;
  }

  void show(const party& p, std::size_t to) const {
    const greeting mine{places_[to].shows, own()};
    // Nothing was sent before, so there is space for all of it.
    if (::send(p.socket.get(), &mine, sizeof mine, MSG_NOSIGNAL)
        != static_cast<ssize_t>(sizeof mine))
      throw std::system_error(errno, std::system_category());
  }

  bool hear(party& p) {
    const auto n = ::recv(p.socket.get(), p.come.data() + p.has_come,
                          p.come.size() - p.has_come, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return true;
    if (n <= 0)
      throw std::system_error(n == 0 ? ECONNRESET : errno,
                              std::system_category());
    p.has_come += static_cast<std::size_t>(n);
    if (p.has_come < p.come.size())
      return true;
    greeting said;
    std::memcpy(&said, p.come.data(), sizeof said);
    if (!is_expected(p, said))
      throw std::system_error(EPROTO, std::system_category());
    if (!p.called)
      show(p, said.process);
    const int yes = 1; // a message does not wait until others are confirmed
    ::setsockopt(p.socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    linked_[said.process] = std::move(p.socket);
    return false;
  }

  bool is_expected(const party& p, const greeting& said) const {
    if (!equal_secrets(said.shown, of_.secret_))
      return false;
    return p.called ? said.process == *p.called
                    : said.process > own() && said.process < linked_.size()
                        && !linked_[said.process];
  }

  const link_meeting& of_;
  std::vector<place> places_;
  std::list<party> parties_; // oldest first
  std::vector<descriptor> linked_;
};

link_meeting::link_meeting(const link_meeting_options& options,
                           key_store& store)
  : options_(options), store_(store), listening_(listen_at(options.address)) {
  store_.publish(key_of(options_.process),
                 place::text_of(listening_.get(), secret_));
}

std::vector<descriptor> link_meeting::connect_all() {
  return calls{*this}.run();
}

} // namespace troupe::comm

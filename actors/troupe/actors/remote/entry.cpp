// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/entry.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/net/socket_address.hpp>

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace troupe::actors {

namespace {

using comm::tls_session;

[[noreturn]] void throw_gone(const std::string& why) {
  throw error(errc::peer_failure, why);
}

/// Calls `act` (recv or send) until `done` is `size`. False if it would wait.
template <class Act>
bool go_on(std::size_t size, std::size_t& done, Act act) {
  while (done < size) {
    const auto n = act(done);
    if (n > 0)
      done += static_cast<std::size_t>(n);
    else if (n == 0)
      throw_gone("the connection was closed");
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
      return false;
    else if (errno != EINTR)
      throw_gone(std::system_category().message(errno));
  }
  return true;
}

} // namespace

entry::entry(descriptor socket)
  : socket_(std::move(socket)), has_shaken_(true), awaits_(POLLIN) {}

entry::entry(descriptor socket, const comm::tls_identity& own,
             tls_session::side which)
  : socket_(std::move(socket)), tls_(std::in_place, own, which, socket_.get()),
    awaits_(which == tls_session::side::client ? POLLOUT : POLLIN) {}

bool entry::receive(std::span<std::byte> into, std::size_t& done) {
  if (!shake_hands())
    return false;
  if (!tls_) {
    awaits_ = POLLIN;
    return go_on(into.size(), done, [&](std::size_t at) {
      return ::recv(fd(), into.data() + at, into.size() - at, MSG_DONTWAIT);
    });
  }
  while (done < into.size())
    if (!note(tls_->read(into.subspan(done)), done))
      return false;
  return true;
}

bool entry::send(std::span<const std::byte> from, std::size_t& done) {
  if (!shake_hands())
    return false;
  if (!tls_) {
    awaits_ = POLLOUT;
    return go_on(from.size(), done, [&](std::size_t at) {
      return ::send(fd(), from.data() + at, from.size() - at,
                    MSG_DONTWAIT | MSG_NOSIGNAL);
    });
  }
  while (done < from.size())
    if (!note(tls_->write(from.subspan(done)), done))
      return false;
  return true;
}

std::optional<std::size_t> entry::certified() const {
  return tls_ ? std::optional{tls_->peer()} : std::nullopt;
}

passage entry::take() {
  if (!tls_) {
    set_blocking(fd(), true);
    return {std::move(socket_)};
  }
  auto tunnel =
    std::make_unique<comm::tls_tunnel>(std::move(socket_), std::move(*tls_));
  auto inner = tunnel->take_inner();
  return {std::move(inner), std::move(tunnel)};
}

bool entry::shake_hands() {
  if (!has_shaken_)
    has_shaken_ = wait_to(tls_->shake_hands());
  return has_shaken_;
}

/// False if nothing can be done now.
bool entry::note(const tls_session::progress& made, std::size_t& done) {
  done += made.bytes;
  if (made.bytes == 0 && made.is_over)
    throw_gone("the connection was closed");
  return made.bytes > 0 || wait_to(made.waits);
}

bool entry::wait_to(tls_session::wish wish) {
  if (wish == tls_session::wish::nothing)
    return true;
  awaits_ = wish == tls_session::wish::to_read ? POLLIN : POLLOUT;
  return false;
}

} // namespace troupe::actors

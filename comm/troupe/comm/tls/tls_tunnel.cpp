// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/tls/tls_tunnel.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/threads.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <utility>

namespace troupe::comm {

namespace {

using wish = tls_session::wish;

/// How long a tunnel that ends goes on to pass bytes on.
constexpr std::chrono::milliseconds longest_flush{200};

[[noreturn]] void fail_with_errno(const std::string& what) {
  throw error(errc::io_failure,
              what + ": " + std::system_category().message(errno));
}

/// What `poll` looks for if that is wished.
short events_of(wish wished) {
  switch (wished) {
  case wish::to_read: return POLLIN;
  case wish::to_write: return POLLOUT;
  default: return 0;
  }
}

// -- one direction ------------------------------------------------------------

/// Bytes that have come from one side and not yet gone to the other. They are
/// filled in when there are none, so that a write that is repeated has the
/// same.
class passage {
public:
  bool is_empty() const { return begin_ == end_; }
  bool takes() const { return is_empty() && !is_over_; }
  /// No more comes, and everything has gone.
  bool is_through() const { return is_empty() && is_over_; }

  std::span<std::byte> room() { return bytes_; }
  std::span<const std::byte> waiting() const {
    return std::span{bytes_}.subspan(begin_, end_ - begin_);
  }

  void come(std::size_t bytes) {
    begin_ = 0;
    end_ = bytes;
  }
  void gone(std::size_t bytes) { begin_ += bytes; }
  void drop() { begin_ = end_; }
  void end() { is_over_ = true; }

private:
  std::array<std::byte, 64 * 1024> bytes_;
  std::size_t begin_ = 0, end_ = 0;
  bool is_over_ = false;
};

// -- the plain end ------------------------------------------------------------

/// What `recv` or `send` did with a socket.
struct plain_transfer {
  std::size_t bytes = 0;
  bool would_wait = false; ///< otherwise, 0 bytes are the end
};

template <class Act>
plain_transfer plain_transfer_of(Act act) {
  for (;;) {
    const ssize_t n = act();
    if (n >= 0)
      return {.bytes = static_cast<std::size_t>(n)};
    if (errno != EINTR)
      return {.would_wait = errno == EAGAIN || errno == EWOULDBLOCK};
  }
}

} // namespace

// -- both directions ----------------------------------------------------------

struct tls_tunnel::ends {
  ends(descriptor to_peer, tls_session tls)
    : outer(std::move(to_peer)), session_(std::move(tls)) {}

  void serve();
  void wake() const;

  descriptor outer, inner, woken;
  std::mutex mutex;
  std::condition_variable changed;
  bool has_ended = false; // guarded by the mutex

private:
  void flush();
  bool move_bytes();
  bool is_done() const;
  bool wait(bool moved) const;
  short outer_events() const;
  short inner_events() const;

  // Each does what is possible now. True if anything has happened.
  bool take_from_inner();
  bool give_to_session();
  bool take_from_session();
  bool give_to_inner();
  bool or_else(bool (ends::*act)(), void (ends::*drop)());
  void drop_outward();
  void drop_session();

  tls_session session_;
  passage outward_, inward_;
  // What the session waits for when it reads and when it writes.
  wish to_take_ = wish::nothing, to_give_ = wish::nothing;
  bool outer_is_told_ = false; // that no more comes
  bool inner_is_told_ = false;
};

/// Passes bytes on until both directions are through or the tunnel is gone.
void tls_tunnel::ends::serve() {
  for (;;) {
    const auto moved = move_bytes();
    if (is_done())
      break;
    if (!wait(moved)) {
      flush();
      break;
    }
  }
  outer = descriptor{};
  inner = descriptor{};
  std::lock_guard guard{mutex};
  has_ended = true;
  changed.notify_all();
}

/// The tunnel ends. What the plain end has given still goes, unless the other
/// side takes it too slowly.
void tls_tunnel::ends::flush() {
  const auto until = std::chrono::steady_clock::now() + longest_flush;
  while (!outer_is_told_ && std::chrono::steady_clock::now() < until) {
    auto moved = take_from_inner();
    if (!moved && outward_.takes())
      outward_.end(); // nothing is left there
    moved = or_else(&ends::give_to_session, &ends::drop_outward) || moved;
    if (moved || outer_is_told_)
      continue;
    pollfd look{outer.get(), events_of(to_give_), 0};
    ::poll(&look, 1, static_cast<int>(longest_flush.count()));
  }
}

void tls_tunnel::ends::wake() const {
  ::eventfd_write(woken.get(), 1);
}

bool tls_tunnel::ends::is_done() const {
  return outer_is_told_ && inner_is_told_;
}

bool tls_tunnel::ends::move_bytes() {
  auto moved = take_from_inner();
  moved = or_else(&ends::give_to_session, &ends::drop_outward) || moved;
  moved = or_else(&ends::take_from_session, &ends::drop_session) || moved;
  return give_to_inner() || moved;
}

/// Does the first, and the second if the connection turns out to be broken.
bool tls_tunnel::ends::or_else(bool (ends::*act)(), void (ends::*drop)()) {
  try {
    return (this->*act)();
  } catch (const error&) {
    (this->*drop)();
    return true;
  }
}

/// The connection takes no more. What the other side sent before that is still
/// to be read.
void tls_tunnel::ends::drop_outward() {
  outward_.end();
  outer_is_told_ = true;
}

/// Nothing comes from the connection. What has come is still passed on.
void tls_tunnel::ends::drop_session() {
  drop_outward();
  inward_.end();
}

bool tls_tunnel::ends::take_from_inner() {
  if (!outward_.takes())
    return false;
  const auto room = outward_.room();
  const auto come = plain_transfer_of([&] {
    return ::recv(inner.get(), room.data(), room.size(), MSG_DONTWAIT);
  });
  if (come.would_wait)
    return false;
  outward_.come(come.bytes);
  if (come.bytes == 0)
    outward_.end();
  return true;
}

bool tls_tunnel::ends::give_to_session() {
  to_give_ = wish::nothing;
  if (outer_is_told_)
    return false;
  if (outward_.is_through()) {
    to_give_ = session_.close();
    outer_is_told_ = to_give_ == wish::nothing;
    return outer_is_told_;
  }
  auto moved = false;
  while (!outward_.is_empty() && to_give_ == wish::nothing) {
    const auto done = session_.write(outward_.waiting());
    outward_.gone(done.bytes);
    to_give_ = done.waits;
    moved = moved || done.bytes > 0;
  }
  return moved;
}

bool tls_tunnel::ends::take_from_session() {
  to_take_ = wish::nothing;
  if (!inward_.takes())
    return false;
  const auto come = session_.read(inward_.room());
  to_take_ = come.waits;
  inward_.come(come.bytes);
  if (come.is_over)
    inward_.end();
  return come.bytes > 0 || come.is_over;
}

bool tls_tunnel::ends::give_to_inner() {
  if (inner_is_told_)
    return false;
  if (inward_.is_through()) {
    ::shutdown(inner.get(), SHUT_WR);
    inner_is_told_ = true;
    return true;
  }
  if (inward_.is_empty())
    return false;
  const auto waiting = inward_.waiting();
  const auto done = plain_transfer_of([&] {
    return ::send(inner.get(), waiting.data(), waiting.size(),
                  MSG_DONTWAIT | MSG_NOSIGNAL);
  });
  inward_.gone(done.bytes);
  if (done.bytes == 0 && !done.would_wait) // nobody is there to take them
    inward_.drop();
  return !done.would_wait;
}

short tls_tunnel::ends::outer_events() const {
  return static_cast<short>(events_of(to_take_) | events_of(to_give_));
}

short tls_tunnel::ends::inner_events() const {
  return static_cast<short>((outward_.takes() ? POLLIN : 0)
                            | (inward_.is_empty() ? 0 : POLLOUT));
}

/// Waits until more can be done; not at all if something `moved`, after which
/// more may be possible. False if the tunnel is gone.
bool tls_tunnel::ends::wait(bool moved) const {
  // A socket that nothing is wanted of is left out: `poll` would report at once
  // that its other side is gone.
  const auto look = [](const descriptor& at, short events) {
    return pollfd{events != 0 ? at.get() : -1, events, 0};
  };
  std::array<pollfd, 3> looks{look(woken, POLLIN), look(outer, outer_events()),
                              look(inner, inner_events())};
  ::poll(looks.data(), looks.size(), moved ? 0 : -1);
  return looks[0].revents == 0;
}

tls_tunnel::tls_tunnel(descriptor outer, tls_session session)
  : ends_(std::make_unique<ends>(std::move(outer), std::move(session))) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    fail_with_errno("no sockets for a TLS connection");
  inner_ = descriptor{pair[0]};
  ends_->inner = descriptor{pair[1]};
  ends_->woken = descriptor{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!ends_->woken)
    fail_with_errno("no event for a TLS connection");
  thread_ = start_thread("troupe-tls", [this] { ends_->serve(); });
}

tls_tunnel::~tls_tunnel() {
  ends_->wake();
  thread_.join();
}

void tls_tunnel::wait_for_end(std::chrono::milliseconds longest) const {
  std::unique_lock guard{ends_->mutex};
  ends_->changed.wait_for(guard, longest, [this] { return ends_->has_ended; });
}

descriptor tls_tunnel::take_inner() {
  return std::move(inner_);
}

} // namespace troupe::comm

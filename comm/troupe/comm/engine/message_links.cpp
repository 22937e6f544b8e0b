// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/engine/message_links.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/threads.hpp>
#include <troupe/comm/engine/frame_reader.hpp>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

namespace troupe::comm {

namespace {

constexpr std::array<std::byte, frame_alignment> zeros{};

[[noreturn]] void fail(const char* what) {
  throw error(errc::io_failure, what + std::system_category().message(errno));
}

iovec part_of(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

} // namespace

/// A connection.
///
/// Thread rule: `post` and `send_rest` on any thread; the others on that of
/// `message_links`.
class message_links::link {
public:
  /// @param ready an epoll, to which the socket is added with this number
  link(descriptor socket, int ready, std::size_t number)
    : socket_(std::move(socket)), ready_(ready), number_(number) {
    await(EPOLL_CTL_ADD, EPOLLIN);
  }

  void post(std::span<const std::byte> message) {
    const frame_head head{message.size()};
    const std::span padding{zeros.data(), padding_of(message.size())};
    std::lock_guard guard{mutex_};
    if (is_lost_)
      return;
    const std::array parts{std::as_bytes(std::span{&head, 1}), message,
                           padding};
    const bool was_empty = unsent_.empty();
    auto sent = was_empty ? send(parts) : 0;
    for (const auto part : parts) {
      const auto skipped = std::min(sent, part.size());
      sent -= skipped;
      unsent_.insert(unsent_.end(), part.begin() + skipped, part.end());
    }
    if (was_empty && !unsent_.empty() && !is_lost_)
      await(EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
  }

  /// The socket takes bytes again.
  void send_rest() {
    std::lock_guard guard{mutex_};
    const std::array parts{std::span{std::as_const(unsent_)}.subspan(first_)};
    first_ += send(parts);
    if (first_ < unsent_.size() && !is_lost_)
      return;
    unsent_.clear();
    first_ = 0;
    await(EPOLL_CTL_MOD, EPOLLIN);
  }

  /// Reads what has come, once. Throws error(peer_failure) if nothing comes any
  /// more.
  template <class Act>
  void receive(Act act) {
    const auto space = reader_.space();
    const auto n = ::recv(socket_.get(), space.data(), space.size(), 0);
    if (n > 0)
      return reader_.came(static_cast<std::size_t>(n), act);
    if (n == 0)
      throw error(errc::peer_failure, "its connection is closed");
    if (errno != EAGAIN && errno != EINTR)
      throw error(errc::peer_failure,
                  "its connection is broken: "
                    + std::system_category().message(errno));
  }

  void lose() {
    std::lock_guard guard{mutex_};
    is_lost_ = true;
    unsent_.clear();
    ::epoll_ctl(ready_, EPOLL_CTL_DEL, socket_.get(), nullptr);
  }

private:
  /// How many bytes the socket has taken. If the connection is broken, it is
  /// ended, so that the thread that reads learns of it, too.
  template <std::size_t Count>
  std::size_t send(const std::array<std::span<const std::byte>, Count>& parts) {
    std::array<iovec, Count> all;
    std::ranges::transform(parts, all.begin(), part_of);
    msghdr message{};
    message.msg_iov = all.data();
    message.msg_iovlen = all.size();
    ssize_t n = 0;
    do
      n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
      return static_cast<std::size_t>(n);
    if (errno != EAGAIN) {
      is_lost_ = true;
      ::shutdown(socket_.get(), SHUT_RDWR);
    }
    return 0;
  }

  void await(int how, std::uint32_t events) {
    epoll_event wanted{};
    wanted.events = events;
    wanted.data.u64 = number_;
    ::epoll_ctl(ready_, how, socket_.get(), &wanted);
  }

  const descriptor socket_;
  const int ready_;
  const std::size_t number_;
  frame_reader reader_;

  std::mutex mutex_; // guards all that follow
  std::vector<std::byte> unsent_;
  std::size_t first_ = 0; // of these that was not sent
  bool is_lost_ = false;
};

message_links::message_links(std::vector<descriptor> sockets, engine_events& to)
  : events_(to), links_(sockets.size()), ready_(::epoll_create1(EPOLL_CLOEXEC)),
    ends_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!ready_ || !ends_)
    fail("messages between processes: ");
  epoll_event end{};
  end.events = EPOLLIN;
  end.data.u64 = sockets.size();
  ::epoll_ctl(ready_.get(), EPOLL_CTL_ADD, ends_.get(), &end);
  for (std::size_t p = 0; p < sockets.size(); ++p)
    if (sockets[p])
      links_[p] =
        std::make_unique<link>(std::move(sockets[p]), ready_.get(), p);
  thread_ = start_thread("troupe-messages", [this] { serve(); });
}

message_links::~message_links() {
  ::eventfd_write(ends_.get(), 1);
  thread_.join();
}

void message_links::post(std::size_t to, std::span<const std::byte> message) {
  links_[to]->post(message);
}

void message_links::serve() {
  std::array<epoll_event, 16> all;
  for (;;) {
    const auto n =
      ::epoll_wait(ready_.get(), all.data(), static_cast<int>(all.size()), -1);
    for (int i = 0; i < n; ++i) {
      const auto& come = all[static_cast<std::size_t>(i)];
      if (come.data.u64 == links_.size())
        return;
      if ((come.events & EPOLLOUT) != 0)
        links_[come.data.u64]->send_rest();
      if ((come.events & ~std::uint32_t{EPOLLOUT}) != 0)
        receive(come.data.u64);
    }
  }
}

void message_links::receive(std::size_t from) {
  const auto lose = [&](const error& why) {
    links_[from]->lose();
    events_.lost(from, why);
  };
  try {
    links_[from]->receive([&](std::span<const std::byte> message) {
      events_.arrived(from, message);
    });
  } catch (const error& why) {
    lose(why);
  } catch (const std::exception& why) { // no memory for a message
    lose({errc::peer_failure, why.what()});
  }
}

} // namespace troupe::comm

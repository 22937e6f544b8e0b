// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/tls/wire.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>

namespace troupe::comm {

struct wire::functions {
  static wire& of(BIO* bio) { return *static_cast<wire*>(BIO_get_data(bio)); }

  /// What OpenSSL is to know of a result of `recv` or `send`.
  static int note(BIO* bio, ssize_t result, int flag_if_waits) {
    BIO_clear_retry_flags(bio);
    if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      BIO_set_flags(bio, flag_if_waits | BIO_FLAGS_SHOULD_RETRY);
    else if (result < 0)
      of(bio).failure_ = errno;
    return static_cast<int>(result);
  }

  static int read(BIO* bio, char* into, int size) {
    auto& self = of(bio);
    ssize_t got = 0;
    do
      got = ::recv(self.socket_, into, static_cast<std::size_t>(size),
                   MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got > 0)
      self.look_at(
        std::as_bytes(std::span{into, static_cast<std::size_t>(got)}));
    else if (got == 0)
      self.is_at_end_ = true;
    return note(bio, got, BIO_FLAGS_READ);
  }

  static int write(BIO* bio, const char* from, int size) {
    ssize_t put = 0;
    do
      put = ::send(of(bio).socket_, from, static_cast<std::size_t>(size),
                   MSG_DONTWAIT | MSG_NOSIGNAL);
    while (put < 0 && errno == EINTR);
    return note(bio, put, BIO_FLAGS_WRITE);
  }

  static long control(BIO* bio, int command, long, void*) {
    switch (command) {
    case BIO_CTRL_FLUSH: return 1; // nothing is kept back
    case BIO_CTRL_EOF: return of(bio).is_at_end() ? 1 : 0;
    default: return 0;
    }
  }

  static BIO_METHOD* make() {
    auto* const made =
      BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire");
    if (made) {
      BIO_meth_set_read(made, read);
      BIO_meth_set_write(made, write);
      BIO_meth_set_ctrl(made, control);
    }
    return made;
  }
};

wire::wire(int socket) : socket_(socket) {
  // Otherwise a short message waits until the one before it is confirmed, which
  // takes 40 ms. Other sockets know no such thing.
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

bio_handle wire::bio() {
  // Never freed: connections of other threads may outlive static objects.
  static BIO_METHOD* const method = functions::make();
  bio_handle made{method ? BIO_new(method) : nullptr};
  if (made) {
    BIO_set_data(made.get(), this);
    BIO_set_init(made.get(), 1);
  }
  return made;
}

void wire::look_at(std::span<const std::byte> come) {
  // The first two bytes are the kind of a record and the 3 of "TLS 1.x", which
  // is 3.x there.
  for (const auto byte : come.first(std::min<std::size_t>(come.size(), 2))) {
    const auto value = std::to_integer<int>(byte);
    if (looked_at_ == 0)
      carries_tls_ = value >= 20 && value <= 24;
    else if (looked_at_ == 1)
      carries_tls_ = carries_tls_ && value == 3;
    else
      return;
    ++looked_at_;
  }
}

} // namespace troupe::comm

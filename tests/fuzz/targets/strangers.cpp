// SPDX-License-Identifier: Apache-2.0
// Bytes of a stranger at the two doors of a run: the gate of one host, and TLS
// between hosts.

#include "fuzz/fuzz_target.hpp"
#include "fuzz/input_bytes.hpp"

#include <support/files.hpp>
#include <troupe/actors/remote/gate.hpp>
#include <troupe/comm/tls/tls_session.hpp>

#include <atomic>
#include <optional>
#include <span>

#include <sys/socket.h>

namespace troupe::fuzz {

namespace {

using comm::tls_session;
using side = tls_session::side;
using wish = tls_session::wish;

constexpr std::size_t knock_bytes = 32, number_bytes = 8;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span{text});
}

void send_text(const descriptor& to, std::string_view text) {
  while (!text.empty()) {
    const auto sent = ::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0)
      return; // the other side has seen enough
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// -- the gate -----------------------------------------------------------------

/// A gate on loopback that notes whom it admits.
class noting_gate {
public:
  noting_gate()
    : door_({.folder = folder_.path().string()},
            {.admit = [this](const actors::passage&, std::uint64_t process,
                             std::uint16_t) {
              process_ = process;
              ++admitted_;
            }}) {
    std::ifstream file(actors::pass_path(folder_.path().string(), door_.port()),
                       std::ios::binary);
    knock_.resize(knock_bytes);
    file.read(knock_.data(), knock_bytes);
  }

  const std::string& knock() const { return knock_; }

  /// A visitor that sends this and no more. Returns the number of the process
  /// that is admitted.
  std::optional<std::uint64_t> visit(std::string_view first,
                                     std::string_view then) {
    const auto before = admitted_.load();
    const auto at = parse_loopback("127.0.0.1", door_.port());
    const descriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (::connect(socket.get(), at.get(), at.size) != 0)
      return std::nullopt; // the system has no port left
    // Closed with a reset: many ports that wait would be used up.
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    send_text(socket, first);
    send_text(socket, then);
    ::shutdown(socket.get(), SHUT_WR);
    wait_for_end(socket, (std::string{first} += then).starts_with(knock_));
    return admitted_ == before ? std::nullopt : std::optional(process_.load());
  }

private:
  /// Returns when the gate has closed the connection.
  static void wait_for_end(const descriptor& socket, bool may_see_answer) {
    char some[64];
    while (::recv(socket.get(), some, sizeof some, 0) > 0)
      if (!may_see_answer)
        fail("the gate answers a stranger");
  }

  test::temporary_folder folder_;
  std::atomic<std::uint64_t> process_{0};
  std::atomic<std::size_t> admitted_{0};
  std::string knock_;
  actors::gate door_;
};

std::uint64_t number_in(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = number_bytes; i-- > 0;)
    number = number << 8 | static_cast<std::uint8_t>(bytes[i]);
  return number;
}

/// The stranger knows the first bytes of the pass, maybe all.
void check_gate(input_bytes& in) {
  static noting_gate door;
  const auto known = door.knock().substr(0, in.byte());
  const auto rest = in.rest();
  const auto shown = known + std::string{rest};
  const auto process = door.visit(known, rest);
  if (process
      && (!shown.starts_with(door.knock())
          || shown.size() < knock_bytes + number_bytes))
    fail("the gate admits a stranger");
  if (process && *process != number_in(shown.substr(knock_bytes)))
    fail("the gate takes a process for another one");
}

// -- TLS ----------------------------------------------------------------------

const comm::tls_identity& identity(std::size_t process) {
  static const auto job = comm::make_job_credentials(2);
  static const comm::tls_identity all[]{job[0], job[1]};
  return all[process];
}

/// One end of a connection, with its socket and the other one.
struct end {
  end(std::size_t process, side which)
    : own(open(other)), session(identity(process), which, own.get()) {}

  /// True if the handshake has been done.
  bool go_on() { return session.shake_hands() == wish::nothing; }

  descriptor other, own;
  tls_session session;

private:
  static descriptor open(descriptor& other) {
    int made[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, made) != 0)
      fail("no sockets");
    other = descriptor{made[1]};
    return descriptor{made[0]};
  }
};

/// A stranger that just sends bytes.
void check_tls(std::string_view bytes, side which) {
  end here{0, which};
  send_text(here.other, bytes);
  ::shutdown(here.other.get(), SHUT_WR);
  for (int turn = 0; turn < 100; ++turn)
    if (here.go_on())
      fail("a stranger is admitted");
  fail("a handshake goes on for ever");
}

/// Passes on what has come, and changes bytes at positions of the stream.
class relay {
public:
  explicit relay(input_bytes changes) : changes_(changes) { next(); }

  void pass(const descriptor& from, const descriptor& to) {
    std::string text(1 << 16, '\0');
    const auto got = ::recv(from.get(), text.data(), text.size(), MSG_DONTWAIT);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    for (auto& byte : text)
      for (++position_; has_next_ && position_ == changed_; next())
        byte = static_cast<char>(byte ^ by_);
    send_text(to, text);
  }

private:
  void next() {
    has_next_ = !changes_.is_empty();
    changed_ += changes_.number();
    by_ = changes_.byte();
  }

  input_bytes changes_;
  std::size_t position_ = 0, changed_ = 1;
  std::uint8_t by_ = 0;
  bool has_next_ = false;
};

/// Somebody between two processes changes what the client sends.
void check_changed_tls(input_bytes& in) {
  end server{0, side::server}, client{1, side::client};
  relay there{in}, back{input_bytes{{}}};
  constexpr std::string_view said = "a message of the client";
  bool is_served = false;
  for (int turn = 0; turn < 4 && !is_served; ++turn) {
    if (client.go_on())
      client.session.write(bytes_of(said));
    there.pass(client.other, server.other);
    is_served = server.go_on();
    back.pass(server.other, client.other);
  }
  if (!is_served)
    return;
  if (server.session.peer() != 1)
    fail("a process is taken for another one");
  std::string got(64, '\0');
  const auto read = server.session.read(std::as_writable_bytes(std::span{got}));
  if (read.bytes > 0 && got.substr(0, read.bytes) != said)
    fail("bytes that were changed are read");
}

} // namespace

memory_allowance allowance() {
  return {.per_byte = 16};
}

void run_target(std::string_view bytes) {
  input_bytes in{bytes};
  const auto door = in.byte() % 4;
  if (door == 0)
    return check_gate(in);
  accept_only({errc::peer_failure}, [&] {
    if (door == 1)
      check_tls(in.rest(), side::server);
    else if (door == 2)
      check_tls(in.rest(), side::client);
    else
      check_changed_tls(in);
  });
}

} // namespace troupe::fuzz

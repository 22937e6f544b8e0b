// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/gate.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/threads.hpp>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <list>
#include <string_view>
#include <system_error>
#include <vector>

namespace troupe::actors {

namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto patience = 2s; // for peers that do not send the pass
// maximum number of connections that have not sent the pass yet
constexpr std::size_t most_waiting = 64;

std::string reason(int number) {
  return std::system_category().message(number);
}

// -- bytes --------------------------------------------------------------------

/// Compares in constant time.
bool equal(const run_pass::token& a, const run_pass::token& b) {
  auto differ = std::byte{0};
  for (std::size_t i = 0; i < a.size(); ++i)
    differ |= a[i] ^ b[i];
  return differ == std::byte{0};
}

/// A token that arrives in pieces.
struct coming_token {
  run_pass::token bytes{};
  std::size_t count = 0;

  bool is_whole() const { return count == bytes.size(); }

  /// Reads the available bytes. False if no more will arrive.
  bool read_from(int fd) {
    while (!is_whole()) {
      const auto got =
        ::recv(fd, bytes.data() + count, bytes.size() - count, MSG_DONTWAIT);
      if (got > 0)
        count += static_cast<std::size_t>(got);
      else if (got < 0 && errno == EINTR)
        continue;
      else
        return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
    return true;
  }
};

/// Sends a token. The buffer of a new connection always has room for it.
bool send_token(int fd, const run_pass::token& token) {
  return ::send(fd, token.data(), token.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
         == static_cast<ssize_t>(token.size());
}

int milliseconds_until(clock::time_point deadline) {
  const auto left =
    std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30));
}

/// Waits until `fd` is ready or has failed. False after the deadline.
bool wait_for(int fd, short events, clock::time_point deadline) {
  for (;;) {
    pollfd one{fd, events, 0};
    const auto n = ::poll(&one, 1, milliseconds_until(deadline));
    if (n > 0)
      return true;
    if (n == 0 && clock::now() >= deadline)
      return false;
    if (n < 0 && errno != EINTR)
      return false;
  }
}

// -- the file of the pass -----------------------------------------------------

void require_own_folder(const std::string& folder) {
  struct stat found {};
  if (::lstat(folder.c_str(), &found) != 0)
    throw error(errc::io_failure, "no folder for the pass of a run: " + folder
                                    + ": " + reason(errno));
  if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid()
      || (found.st_mode & 077) != 0)
    throw error(errc::invalid_argument,
                folder
                  + " must be a folder of this user that nobody else may enter "
                    "(mode 0700): it holds the pass of a run");
}

/// Reads or writes a whole token.
template <class Transfer, class Token>
bool whole(Transfer transfer, int fd, Token& token) {
  for (std::size_t done = 0; done < token.size();) {
    const auto n = transfer(fd, token.data() + done, token.size() - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

/// What the names of a run's files begin with.
std::string run_path(const std::string& folder, std::uint16_t port) {
  return run_folder(folder) + "/" + std::to_string(port);
}

/// The numbers in the names of passes, "PORT.pass".
std::vector<std::uint16_t> ports_of_passes(const std::string& folder) {
  std::vector<std::uint16_t> ports;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder, failed), last;
       !failed && at != last; at.increment(failed)) {
    const auto name = at->path().filename().string();
    std::uint16_t port = 0;
    const auto end =
      std::from_chars(name.data(), name.data() + name.size(), port).ptr;
    if (port != 0 && std::string_view{end} == ".pass")
      ports.push_back(port);
  }
  return ports;
}

void write_pass(const std::string& path, const run_pass& pass) {
  ::unlink(path.c_str()); // left by a run that was killed
  const descriptor file{::open(
    path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (!file || !whole(::write, file.get(), pass.knock)
      || !whole(::write, file.get(), pass.answer))
    throw error(errc::io_failure, "cannot write the pass of the run: " + path
                                    + ": " + reason(errno));
}

run_pass read_pass(const std::string& path) {
  const descriptor file{
    ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  if (!file)
    throw error(errc::peer_failure,
                "no pass of the run, which process 0 writes: " + path + ": "
                  + reason(errno));
  run_pass pass;
  if (!whole(::read, file.get(), pass.knock)
      || !whole(::read, file.get(), pass.answer))
    throw error(errc::peer_failure,
                "the pass of the run is cut short: " + path);
  return pass;
}

// -- sockets ------------------------------------------------------------------

descriptor make_socket(const loopback_address& at) {
  descriptor made{::socket(at.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!made)
    throw error(errc::peer_failure, "no socket: " + reason(errno));
  return made;
}

void set_blocking(int fd, bool yes) {
  const auto flags = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, yes ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

std::uint16_t port_in(const sockaddr_storage& address) {
  in_port_t port = 0;
  const auto* at = reinterpret_cast<const char*>(&address);
  if (address.ss_family == AF_INET)
    std::memcpy(&port, at + offsetof(sockaddr_in, sin_port), sizeof port);
  else if (address.ss_family == AF_INET6)
    std::memcpy(&port, at + offsetof(sockaddr_in6, sin6_port), sizeof port);
  return ntohs(port);
}

/// Returns 0 if connected, otherwise the error number.
int connect_until(int fd, const loopback_address& to,
                  clock::time_point deadline) {
  set_blocking(fd, false);
  if (::connect(fd, to.get(), to.size) == 0)
    return 0;
  if (errno != EINPROGRESS)
    return errno;
  if (!wait_for(fd, POLLOUT, deadline))
    return ETIMEDOUT;
  int failure = 0;
  socklen_t size = sizeof failure;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size);
  return failure;
}

/// A connection that has not sent the pass yet.
struct waiting {
  descriptor socket;
  clock::time_point until;
  coming_token shown{};
};

} // namespace

std::uint16_t port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return port_in(address);
}

std::uint16_t port_of_peer(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return port_in(address);
}

run_pass run_pass::random() {
  run_pass made;
  for (auto* t : {&made.knock, &made.answer})
    if (::getrandom(t->data(), t->size(), 0) != static_cast<ssize_t>(t->size()))
      throw error(errc::io_failure, "no random numbers: " + reason(errno));
  return made;
}

std::string run_folder(const std::string& folder) {
  auto in = folder;
  if (in.empty()) {
    in = "/tmp/troupe-" + std::to_string(::geteuid());
    ::mkdir(in.c_str(), 0700); // fails if it exists, which is fine
  }
  require_own_folder(in);
  return in;
}

std::string pass_path(const std::string& folder, std::uint16_t port) {
  return run_path(folder, port) + ".pass";
}

std::string group_path(const std::string& folder, std::uint16_t port) {
  return run_path(folder, port) + ".group";
}

gate::gate(const std::string& host, std::uint16_t port,
           const std::string& folder,
           std::function<void(descriptor, std::uint16_t)> admit)
  : admit_(std::move(admit)), pass_(run_pass::random()) {
  const auto at = parse_loopback(host, port);
  const auto require = [&](int result) {
    if (result != 0)
      throw error(errc::peer_failure, "cannot listen on " + host + ":"
                                        + std::to_string(port) + ": "
                                        + reason(errno));
  };
  listening_ = make_socket(at);
  const int yes = 1; // a run can reuse the port of an earlier run at once
  ::setsockopt(listening_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  require(::bind(listening_.get(), at.get(), at.size));
  port_ = port_of(listening_.get());
  int ends[2];
  require(::pipe2(ends, O_CLOEXEC));
  woken_ = descriptor{ends[0]};
  wake_ = descriptor{ends[1]};
  set_blocking(listening_.get(), false);
  // This process now owns the port, and nobody is admitted before the file
  // exists.
  path_ = pass_path(folder, port_);
  write_pass(path_, pass_);
  if (::listen(listening_.get(), SOMAXCONN) != 0) {
    const auto failed = errno;
    ::unlink(path_.c_str());
    errno = failed;
    require(-1);
  }
  try {
    thread_ = start_thread([this] { serve(); });
  } catch (...) {
    ::unlink(path_.c_str());
    throw;
  }
}

gate::~gate() {
  // Closing the pipe is not enough: a fork of this process could hold it open.
  while (::write(wake_.get(), "", 1) < 0 && errno == EINTR) {
  }
  thread_.join();
  ::unlink(path_.c_str());
}

void gate::serve() {
  std::list<waiting> outside; // oldest first
  for (;;) {
    std::vector<pollfd> looks{{woken_.get(), POLLIN, 0},
                              {listening_.get(), POLLIN, 0}};
    for (auto& w : outside)
      looks.push_back({w.socket.get(), POLLIN, 0});
    const auto until =
      outside.empty() ? -1 : milliseconds_until(outside.front().until);
    if (::poll(looks.data(), looks.size(), until) < 0)
      continue; // interrupted
    if (looks[0].revents != 0)
      return;
    const auto now = clock::now();
    for (auto w = outside.begin(); w != outside.end();) {
      auto stays = w->shown.read_from(w->socket.get()) && w->until > now;
      if (w->shown.is_whole()) {
        stays = false;
        if (equal(w->shown.bytes, pass_.knock)
            && send_token(w->socket.get(), pass_.answer))
          admit_(std::move(w->socket), port_);
      }
      w = stays ? std::next(w) : outside.erase(w);
    }
    if (looks[1].revents == 0)
      continue;
    descriptor come{
      ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    if (!come) {
      // Out of descriptors. Waiting connections will soon be closed.
      if (errno == EMFILE || errno == ENFILE)
        std::this_thread::sleep_for(10ms);
      continue;
    }
    if (outside.size() == most_waiting)
      outside.pop_front();
    outside.push_back({std::move(come), now + patience});
  }
}

std::uint16_t find_run(const std::string& host, const std::string& folder,
                       clock::time_point deadline,
                       const std::function<void()>& check) {
  require_own_folder(folder);
  for (;;) {
    for (const auto port : ports_of_passes(folder)) {
      const auto to = parse_loopback(host, port);
      if (connect_until(make_socket(to).get(), to, deadline) == 0)
        return port;
    }
    if (check)
      check();
    if (clock::now() >= deadline)
      throw error(errc::peer_failure,
                  "process 0 has not opened the run in " + folder + " in time");
    std::this_thread::sleep_for(2ms);
  }
}

descriptor knock(const std::string& host, std::uint16_t port,
                 const std::string& folder, clock::time_point deadline) {
  const auto where = host + ":" + std::to_string(port);
  const auto to = parse_loopback(host, port);
  auto socket = make_socket(to);
  if (const auto failure = connect_until(socket.get(), to, deadline))
    throw error(errc::peer_failure,
                "cannot reach process 0 at " + where + ": " + reason(failure));
  const auto pass = read_pass(pass_path(folder, port));
  coming_token answer;
  auto comes = send_token(socket.get(), pass.knock);
  while (comes && !answer.is_whole()) {
    if (!wait_for(socket.get(), POLLIN, deadline))
      throw error(errc::peer_failure,
                  "process 0 at " + where + " does not answer in time");
    comes = answer.read_from(socket.get());
  }
  if (!comes || !equal(answer.bytes, pass.answer))
    throw error(
      errc::peer_failure,
      "process 0 at " + where
        + " is gone, or who listens there does not belong to this run");
  set_blocking(socket.get(), true);
  return socket;
}

} // namespace troupe::actors

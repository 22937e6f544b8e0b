// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/gate.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/net/secret.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/base/threads.hpp>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <exception>
#include <list>
#include <optional>
#include <system_error>
#include <tuple>
#include <vector>

namespace troupe::actors {

namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto patience = 2s; // for peers that do not send the pass
constexpr auto between_tries = 20ms;
constexpr auto between_checks = 100ms;
// for one of several addresses of a host, and for a host that does not answer
constexpr auto longest_try = 5s;
// maximum number of connections that have not sent the pass yet
constexpr std::size_t most_waiting = 64;

std::string reason(int number) {
  return std::system_category().message(number);
}

// -- bytes --------------------------------------------------------------------

/// What a process sends: the token, then its number, least significant byte
/// first.
constexpr std::size_t number_bytes = 8;
using knock_bytes =
  std::array<std::byte, std::tuple_size_v<run_pass::token> + number_bytes>;

knock_bytes bytes_of(const run_pass::token& token, std::uint64_t process) {
  knock_bytes all{};
  std::ranges::copy(token, all.begin());
  for (std::size_t i = 0; i < number_bytes; ++i)
    all[token.size() + i] = static_cast<std::byte>(process >> (8 * i));
  return all;
}

run_pass::token token_in(const knock_bytes& all) {
  run_pass::token token{};
  std::copy_n(all.begin(), token.size(), token.begin());
  return token;
}

std::uint64_t process_in(const knock_bytes& all) {
  std::uint64_t process = 0;
  for (std::size_t i = 0; i < number_bytes; ++i)
    process |= std::to_integer<std::uint64_t>(
                 all[std::tuple_size_v<run_pass::token> + i])
               << (8 * i);
  return process;
}

int milliseconds_until(clock::time_point deadline) {
  const auto left =
    std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30));
}

/// Waits until `fd` is ready or has failed. False after the deadline.
/// @param check called now and then, if set; what it throws ends the wait
bool wait_for(int fd, short events, clock::time_point deadline,
              const std::function<void()>& check) {
  for (;;) {
    pollfd one{fd, events, 0};
    const auto n = ::poll(
      &one, 1,
      milliseconds_until(std::min(deadline, clock::now() + between_checks)));
    if (n > 0)
      return true;
    if (n == 0 && clock::now() >= deadline)
      return false;
    if (n < 0 && errno != EINTR)
      return false;
    if (check)
      check();
  }
}

// -- the pass -----------------------------------------------------------------

run_pass pass_in(const comm::job_credentials& credentials) {
  return {credentials.knock, credentials.answer};
}

// -- sockets ------------------------------------------------------------------

descriptor make_socket(const socket_address& at) {
  descriptor made{::socket(at.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!made)
    throw error(errc::peer_failure, "no socket: " + reason(errno));
  return made;
}

/// Returns 0 if connected, otherwise the error number.
int connect_until(int fd, const socket_address& to, clock::time_point deadline,
                  const std::function<void()>& check = {}) {
  set_blocking(fd, false);
  if (::connect(fd, to.get(), to.size) == 0)
    return 0;
  if (errno != EINPROGRESS)
    return errno;
  if (!wait_for(fd, POLLOUT, deadline, check))
    return ETIMEDOUT;
  int failure = 0;
  socklen_t size = sizeof failure;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size);
  return failure;
}

/// Has a socket come from an address of the interface that is of the kind of
/// `to`. Returns 0 or the error number.
int bind_to_interface(const descriptor& socket, const way_in& way,
                      const socket_address& to) {
  if (way.interface.empty())
    return 0;
  for (const auto& from : addresses_of_interface(way.interface, 0))
    if (from.get()->sa_family == to.get()->sa_family)
      return ::bind(socket.get(), from.get(), from.size) == 0 ? 0 : errno;
  return EAFNOSUPPORT;
}

/// Connects to one of the addresses. Returns 0 or the error number of the last.
int connect_once(descriptor& socket, const way_in& way,
                 clock::time_point deadline,
                 const std::function<void()>& check) {
  int failure = ETIMEDOUT;
  for (const auto& to : way.find_addresses()) {
    socket = make_socket(to);
    failure = bind_to_interface(socket, way, to);
    if (failure == 0)
      failure = connect_until(socket.get(), to, deadline, check);
    if (failure == 0)
      break;
  }
  return failure;
}

/// Connects. Among several hosts, process 0 may start later than others, and a
/// name server may not answer at once. Throws error(peer_failure).
void connect(descriptor& socket, const way_in& way, clock::time_point deadline,
             const std::function<void()>& check) {
  for (;;) {
    const auto now = clock::now();
    std::string why;
    try {
      const auto failure = connect_once(
        socket, way,
        way.credentials ? std::min(deadline, now + longest_try) : deadline,
        check);
      if (failure == 0)
        return;
      why = reason(failure);
    } catch (const error& e) {
      if (e.code() != errc::peer_failure)
        throw;
      why = e.message();
    }
    if (!way.credentials || !way.waits || clock::now() >= deadline)
      throw error(errc::peer_failure,
                  "cannot reach process 0 at " + way.text() + ": " + why);
    if (check)
      check();
    std::this_thread::sleep_for(between_tries);
  }
}

// -- both sides ---------------------------------------------------------------

/// Binds a socket to the first address that this host has. Returns 0, or -1 and
/// sets errno.
int bind_to_first_of(const std::vector<socket_address>& addresses,
                     descriptor& made) {
  for (const auto& at : addresses) {
    made = make_socket(at);
    const int yes = 1; // a run can reuse the port of an earlier run at once
    ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(made.get(), at.get(), at.size) == 0)
      return 0;
  }
  return -1;
}

/// Calls `act` until it is done. Throws after the deadline.
template <class Act>
void until_done(entry& by, const way_in& way, clock::time_point deadline,
                const std::function<void()>& check, Act act) {
  while (!act())
    if (!wait_for(by.fd(), by.awaits(), deadline, check))
      throw error(errc::peer_failure,
                  "process 0 at " + way.text() + " does not answer in time");
}

/// Shows the pass. False if who listens does not have it.
bool exchange_pass(entry& by, const way_in& way, const run_pass& pass,
                   std::uint64_t process, clock::time_point deadline,
                   const std::function<void()>& check) {
  const auto shown = bytes_of(pass.knock, process);
  run_pass::token answer{};
  std::size_t sent = 0, received = 0;
  until_done(by, way, deadline, check, [&] { return by.send(shown, sent); });
  until_done(by, way, deadline, check,
             [&] { return by.receive(answer, received); });
  return equal_secrets(answer, pass.answer) && by.certified().value_or(0) == 0;
}

/// Whoever listens at a pass in the folder of this run is process 0, too.
void refuse_second(const way_in& way, std::uint16_t own_port) {
  for (const auto port : ports_of_passes(way.folder)) {
    const auto to = parse_loopback(way.host, port);
    if (port != own_port
        && connect_until(make_socket(to).get(), to, clock::now() + patience)
             == 0)
      throw error(errc::peer_failure,
                  "process 0 is there already, at " + to.figures() + ":"
                    + std::to_string(port) + ": two have this number");
  }
}

} // namespace

std::vector<socket_address> way_in::find_addresses() const {
  return credentials ? find_host(host, port)
                     : std::vector{parse_loopback(host, port)};
}

std::vector<socket_address> way_in::find_own_addresses() const {
  const auto all = find_addresses();
  if (interface.empty())
    return all;
  const auto own = addresses_of_interface(interface, port);
  auto both = common_of(all, own);
  if (both.empty())
    throw error(
      errc::invalid_argument,
      "host " + quoted_name(host) + " leads to " + all.front().figures()
        + ", which is no address of network interface " + quoted_name(interface)
        + " (" + own.front().figures() + ")");
  return both;
}

std::string way_in::text() const {
  const auto is_v6 = host.find(':') != host.npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

/// A connection that is not admitted yet.
struct gate::visitor {
  entry by;
  clock::time_point until;
  std::string from; ///< its address
  knock_bytes shown{};
  std::size_t has_shown = 0, answered = 0;
};

gate::gate(const way_in& way, listener listens)
  : listens_(std::move(listens)),
    pass_(way.credentials ? pass_in(*way.credentials) : run_pass::random()) {
  if (way.credentials)
    identity_.emplace(*way.credentials);
  const auto require = [&](int result) {
    if (result != 0)
      throw error(errc::peer_failure,
                  "cannot listen on " + way.text() + ": " + reason(errno));
  };
  require(bind_to_first_of(way.find_own_addresses(), listening_));
  port_ = own_address(listening_.get()).port();
  int ends[2];
  require(::pipe2(ends, O_CLOEXEC));
  woken_ = descriptor{ends[0]};
  wake_ = descriptor{ends[1]};
  set_blocking(listening_.get(), false);
  // This process now owns the port, and nobody is admitted before the file
  // exists.
  if (!identity_) {
    path_ = pass_path(way.folder, port_);
    write_pass(path_, pass_);
  }
  if (::listen(listening_.get(), SOMAXCONN) != 0) {
    const auto failed = errno;
    ::unlink(path_.c_str());
    errno = failed;
    require(-1);
  }
  try {
    if (!identity_ && way.port == 0 && !way.folder.empty())
      refuse_second(way, port_);
    thread_ = start_thread("troupe-gate", [this] { serve(); });
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
  if (!path_.empty())
    ::unlink(path_.c_str());
}

std::string gate::address() const {
  return own_address(listening_.get()).figures();
}

void gate::serve() {
  std::list<visitor> outside; // oldest first
  for (;;) {
    std::vector<pollfd> looks{{woken_.get(), POLLIN, 0},
                              {listening_.get(), POLLIN, 0}};
    for (auto& v : outside)
      looks.push_back({v.by.fd(), v.by.awaits(), 0});
    const auto until =
      outside.empty() ? -1 : milliseconds_until(outside.front().until);
    if (::poll(looks.data(), looks.size(), until) < 0)
      continue; // interrupted
    if (looks[0].revents != 0)
      return;
    for (auto v = outside.begin(); v != outside.end();)
      v = go_on_with(*v) ? std::next(v) : outside.erase(v);
    if (looks[1].revents != 0)
      let_in(outside);
  }
}

/// False if the visitor has been admitted or is sent away.
bool gate::go_on_with(visitor& v) {
  try {
    const auto has_all = v.by.receive(v.shown, v.has_shown);
    if (!may_enter(v))
      throw error(errc::peer_failure,
                  "it does not show the pass of the run, or its certificate is "
                  "of another process");
    if (has_all && v.by.send(pass_.answer, v.answered)) {
      listens_.admit(v.by.take(), process_in(v.shown), port_);
      return false;
    }
  } catch (const error& why) {
    tell_refusal(v, why.message());
    return false;
  } catch (const std::exception&) { // no memory: it may come again
    return false;
  }
  return v.until > clock::now();
}

/// False as soon as what the visitor has shown is wrong.
bool gate::may_enter(const visitor& v) const {
  if (v.has_shown < pass_.knock.size())
    return true;
  if (!equal_secrets(token_in(v.shown), pass_.knock))
    return false;
  const auto certified = v.by.certified();
  return v.has_shown < v.shown.size() || !certified
         || *certified == process_in(v.shown);
}

void gate::tell_refusal(const visitor& v, const std::string& why) {
  if (identity_ && listens_.refused)
    listens_.refused("a connection from " + v.from + " was refused: " + why);
}

void gate::let_in(std::list<visitor>& outside) {
  descriptor come{::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
  if (!come) {
    // Out of descriptors. Waiting connections will soon be closed.
    if (errno == EMFILE || errno == ENFILE)
      std::this_thread::sleep_for(10ms);
    return;
  }
  if (outside.size() == most_waiting)
    outside.pop_front();
  try {
    auto from = address_of_peer(come.get()).figures();
    outside.push_back({identity_ ? entry{std::move(come), *identity_,
                                         comm::tls_session::side::server}
                                 : entry{std::move(come)},
                       clock::now() + patience, std::move(from)});
  } catch (const std::exception&) { // no memory: it may come again
  }
}

std::uint16_t find_run(const std::string& host, const std::string& folder,
                       clock::time_point deadline,
                       const std::function<void()>& check) {
  require_own_folder(folder);
  for (;;) {
    for (const auto port : ports_of_passes(folder)) {
      const auto to = parse_loopback(host, port);
      if (connect_until(make_socket(to).get(), to, deadline, check) == 0)
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

admission knock(const way_in& way, std::uint64_t process,
                clock::time_point deadline,
                const std::function<void()>& check) {
  std::optional<comm::tls_identity> identity;
  if (way.credentials)
    identity.emplace(*way.credentials);
  descriptor socket;
  connect(socket, way, deadline, check);
  const auto seen = own_address(socket.get()).figures();
  auto by = identity ? entry{std::move(socket), *identity,
                             comm::tls_session::side::client}
                     : entry{std::move(socket)};
  const auto pass = way.credentials
                      ? pass_in(*way.credentials)
                      : read_pass(pass_path(way.folder, way.port));
  bool belongs = false;
  std::string why;
  try {
    belongs = exchange_pass(by, way, pass, process, deadline, check);
  } catch (const error& e) {
    if (e.code() != errc::peer_failure || clock::now() >= deadline)
      throw;
    why = ": " + e.message();
  }
  if (!belongs)
    throw error(errc::peer_failure, "process 0 at " + way.text()
                                      + " is gone, or who listens there does "
                                        "not belong to this run"
                                      + why);
  return {by.take(), seen};
}

} // namespace troupe::actors

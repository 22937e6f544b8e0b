// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/server/web_server.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/base/threads.hpp>
#include <troupe/dashboard/server/certificate_names.hpp>
#include <troupe/dashboard/server/make_connection.hpp>
#include <troupe/dashboard/server/rate_limit.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/host_name.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fcntl.h>
#include <openssl/err.h>
#include <pthread.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace troupe::dashboard {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using error_code = boost::system::error_code;

/// After a connection could not be accepted, e.g. for want of descriptors.
constexpr std::chrono::milliseconds pause_after_refusal{100};
/// Of a crowd that waits, so many are taken at a time: each look costs a switch
/// of threads.
constexpr std::size_t connections_of_a_look = 10;
constexpr std::chrono::milliseconds shortest_tick{10}, longest_tick{1000};

std::string place_of(const web_server_options& options) {
  return quoted_name(options.address) + " port " + std::to_string(options.port);
}

/// Throws error(io_failure) if the system has refused.
void require(const error_code& failed, const std::string& what) {
  if (failed)
    throw error(errc::io_failure, what + ": " + failed.message());
}

asio::ip::address address_of(const web_server_options& options) {
  if (options.address == "localhost")
    return asio::ip::address_v4::loopback();
  error_code failed;
  const auto address = asio::ip::make_address(options.address, failed);
  if (failed)
    throw error(errc::invalid_argument,
                quoted_name(options.address)
                  + " is no address in figures: the dashboard cannot listen");
  return address;
}

bool has_tls(const web_server_options& options) {
  return !options.certificate.empty();
}

// -- TLS ----------------------------------------------------------------------

/// Throws error(io_failure) if OpenSSL has refused. Boost 1.74 has no text for
/// the system's errors.
void require_tls(const error_code& failed, const std::string& what) {
  const auto number = static_cast<unsigned>(failed.value());
  if (failed && ERR_SYSTEM_ERROR(number))
    throw error(errc::io_failure,
                what + ": "
                  + std::system_category().message(ERR_GET_REASON(number)));
  require(failed, what);
}

std::optional<asio::ssl::context> tls_of(const web_server_options& options) {
  if (!has_tls(options))
    return std::nullopt;
  asio::ssl::context tls{asio::ssl::context::tls_server};
  ::SSL_CTX_set_min_proto_version(tls.native_handle(), TLS1_2_VERSION);
  ::SSL_CTX_set_options(tls.native_handle(), SSL_OP_NO_RENEGOTIATION);
  error_code failed;
  // OpenSSL would ask at the terminal.
  tls.set_password_callback([](auto&&...) { return std::string{}; }, failed);
  require_tls(failed, "TLS");
  tls.use_certificate_chain_file(options.certificate, failed);
  require_tls(failed,
              "cannot use the certificate " + quoted_name(options.certificate));
  tls.use_private_key_file(options.key, asio::ssl::context::pem, failed);
  require_tls(failed, "cannot use the key " + quoted_name(options.key));
  return tls;
}

// -- listening ----------------------------------------------------------------

/// Programs that this process starts do not get the socket.
template <class Socket>
void keep_from_children(Socket& socket) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

tcp::acceptor listen_at(asio::io_context& io,
                        const web_server_options& options) {
  const tcp::endpoint place{address_of(options), options.port};
  const auto what = "the dashboard cannot listen at " + place_of(options);
  tcp::acceptor acceptor{io};
  error_code failed;
  acceptor.open(place.protocol(), failed);
  require(failed, what);
  keep_from_children(acceptor);
  acceptor.set_option(tcp::acceptor::reuse_address{true}, failed);
  require(failed, what);
  acceptor.bind(place, failed);
  require(failed, what);
  acceptor.listen(options.connections_waiting, failed);
  require(failed, what);
  acceptor.non_blocking(true, failed);
  require(failed, what);
  return acceptor;
}

/// What browsers call the address. One that stands for all addresses of the
/// machine is called by the machine's name.
std::string host_of(const asio::ip::address& address) {
  if (address.is_unspecified()) {
    error_code ignored;
    auto name = asio::ip::host_name(ignored);
    std::transform(name.begin(), name.end(), name.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return name;
  }
  const auto figures = address.to_string();
  return address.is_v6() ? "[" + figures + "]" : figures;
}

own_hosts hosts_of(const tcp::endpoint& at, const web_server_options& options) {
  own_hosts::place where{.host = host_of(at.address()),
                         .port = at.port(),
                         .is_loopback = at.address().is_loopback(),
                         .has_tls = has_tls(options)};
  if (has_tls(options)) {
    where.is_further_name = names_in_certificate(options.certificate);
    // A browser trusts a link only if the certificate has its host.
    if (!where.is_loopback && !where.is_further_name(where.host))
      where.name_in_links = first_name_in_certificate(options.certificate);
  }
  return own_hosts{std::move(where)};
}

} // namespace

class web_server::implementation {
public:
  implementation(const web_server_options& options, web_access access,
                 web_handler handler)
    : tls_(tls_of(options)), acceptor_(listen_at(io_, options)),
      arrivals_(static_cast<double>(options.connections_at_once),
                options.connections_per_second),
      pause_(io_), timer_(io_), port_(acceptor_.local_endpoint().port()) {
    front_door door{std::move(access),
                    hosts_of(acceptor_.local_endpoint(), options)};
    view_link_ = door.view_link();
    control_link_ = door.control_link();
    state_.reset(
      new server_state{options, std::move(door), std::move(handler)});
    listen();
    thread_ = start_thread("troupe-web", [this] { run(); });
  }
  ~implementation() {
    io_.stop();
    thread_.join();
  }
  implementation(const implementation&) = delete;
  implementation& operator=(const implementation&) = delete;

  void publish(frame newest) {
    {
      const std::lock_guard guard{published_mutex_};
      const auto is_on_its_way = published_ != nullptr;
      published_ = std::move(newest);
      if (is_on_its_way) // instead of the last one
        return;
    }
    asio::post(io_, [this] { show(); });
  }

  std::size_t watchers() const {
    // As the member says, relaxed is enough.
    return state_->watchers.load(std::memory_order_relaxed);
  }

  double cpu_seconds() {
    clockid_t clock = 0;
    timespec time{};
    // The thread ends only in the destructor.
    if (::pthread_getcpuclockid(thread_.native_handle(), &clock) != 0
        || ::clock_gettime(clock, &time) != 0)
      return 0;
    return static_cast<double>(time.tv_sec)
           + static_cast<double>(time.tv_nsec) * 1e-9;
  }

  std::uint16_t port() const { return port_; }
  const std::string& view_link() const { return view_link_; }
  const std::string& control_link() const { return control_link_; }

private:
  // All below on the thread.

  void run() {
    for (;;)
      try {
        io_.run();
        return;
      } catch (const std::exception&) {
        // No memory for an operation: its client is gone, the others are not.
      }
  }

  void listen() {
    acceptor_.async_wait(tcp::acceptor::wait_read,
                         [this](error_code) { accept(); });
  }

  /// Takes those that wait, at most as many as the rate allows.
  void accept() {
    for (;;) {
      const auto now = connection::clock::now();
      if (arrivals_.time_until(1, now).count() > 0)
        break;
      error_code failed;
      tcp::socket socket{io_};
      acceptor_.accept(socket, failed);
      if (failed == asio::error::would_block)
        return listen();
      if (failed) // such as for want of descriptors: the next one fails as well
        return rest(pause_after_refusal);
      arrivals_.allows(now); // a look that finds nobody does not count
      try {
        take(std::move(socket));
      } catch (const std::exception&) {
        // No memory for this one: it is gone, the others are not.
      }
    }
    const auto many = static_cast<double>(
      std::min(connections_of_a_look, state_->options.connections_at_once));
    rest(arrivals_.time_until(many, connection::clock::now()));
  }

  void rest(connection::clock::duration time) {
    pause_.expires_after(time);
    pause_.async_wait([this](error_code) { accept(); });
  }

  void take(tcp::socket socket) {
    if (!has_room())
      return; // closes it
    keep_from_children(socket);
    error_code ignored;
    socket.set_option(tcp::no_delay{true}, ignored);
    const auto made = tls_
                        ? make_tls_connection(std::move(socket), *tls_, *state_)
                        : make_plain_connection(std::move(socket), *state_);
    made->begin();
    if (!is_ticking_)
      wait_for_tick();
  }

  /// Strangers keep nobody out: of too many, the one that came first goes.
  bool has_room() {
    if (state_->connections.size() < state_->options.connections)
      return true;
    connection* oldest = nullptr;
    for (auto* each : state_->connections)
      if (each->is_stranger() && (!oldest || each->number < oldest->number))
        oldest = each;
    if (oldest)
      oldest->close();
    return oldest != nullptr;
  }

  void wait_for_tick() {
    is_ticking_ = true;
    const std::chrono::milliseconds quarter = state_->options.patience / 4;
    timer_.expires_after(std::clamp(quarter, shortest_tick, longest_tick));
    timer_.async_wait([this](error_code) { tick(); });
  }

  void tick() {
    const auto now = connection::clock::now();
    for (auto* each : state_->connections) // those that close leave later
      each->tick(now);
    is_ticking_ = false;
    if (!state_->connections.empty()) // nothing ticks for nobody
      wait_for_tick();
  }

  void show() {
    {
      const std::lock_guard guard{published_mutex_};
      state_->newest = std::exchange(published_, nullptr);
    }
    for (auto* each : state_->connections)
      each->show(state_->newest);
  }

  // Connections end when `io_` destroys their operations, and need these then.
  std::unique_ptr<server_state> state_;
  std::optional<asio::ssl::context> tls_;

  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  rate_limit arrivals_;
  asio::steady_timer pause_, timer_;
  bool is_ticking_ = false;

  std::uint16_t port_;
  std::string view_link_, control_link_;

  std::mutex published_mutex_;
  frame published_; ///< until the thread has it

  std::thread thread_;
};

void require_safe(const web_server_options& options, bool has_token_file) {
  if (options.certificate.empty() != options.key.empty())
    throw error(errc::invalid_argument,
                "TLS needs both a certificate and its key");
  if (!address_of(options).is_loopback()
      && (!has_tls(options) || !has_token_file))
    throw error(errc::invalid_argument,
                "other machines reach " + quoted_name(options.address)
                  + ": a dashboard there needs a certificate, its key and a "
                    "token file");
}

web_server::web_server(web_server_options options, web_access access,
                       web_handler handler) {
  require_safe(options, access.has_token_file());
  implementation_ = std::make_unique<implementation>(options, std::move(access),
                                                     std::move(handler));
}

web_server::~web_server() = default;

void web_server::publish(frame newest) {
  if (newest)
    implementation_->publish(std::move(newest));
}

std::size_t web_server::watchers() const noexcept {
  return implementation_->watchers();
}

std::uint16_t web_server::port() const noexcept {
  return implementation_->port();
}

const std::string& web_server::view_link() const noexcept {
  return implementation_->view_link();
}

const std::string& web_server::control_link() const noexcept {
  return implementation_->control_link();
}

double web_server::cpu_seconds() const noexcept {
  return implementation_->cpu_seconds();
}

} // namespace troupe::dashboard

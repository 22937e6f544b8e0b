// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/dashboard/server/connection.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream_base.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace troupe::dashboard {

namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;

/// The text of a header's value or of another view of Boost's.
inline std::string_view text_of(beast::string_view text) {
  return {text.data(), text.size()};
}

/// What the front door looks at.
template <class Request>
request_head head_of(const Request& request) {
  return {.method = text_of(request.method_string()),
          .target = text_of(request.target()),
          .host_headers = request.count(http::field::host),
          .host = text_of(request[http::field::host]),
          .origin_headers = request.count(http::field::origin),
          .origin = text_of(request[http::field::origin]),
          .cookie = text_of(request[http::field::cookie]),
          .authorization = text_of(request[http::field::authorization]),
          .content_type = text_of(request[http::field::content_type]),
          .is_upgrade = websocket::is_upgrade(request),
          .protocols = text_of(request[http::field::sec_websocket_protocol])};
}

/// The answer to what could not be read as a request. Nothing if the client is
/// gone.
inline std::optional<verdict> refuse_unread(beast::error_code failed) {
  using e = http::error;
  if (failed == e::header_limit || failed == e::buffer_overflow)
    return plain_answer(431, "the request's head is too large");
  if (failed == e::body_limit)
    return plain_answer(413, "the request's body is too large");
  if (failed == e::end_of_stream || failed == e::partial_message
      || failed.category() != make_error_code(e::bad_method).category())
    return std::nullopt;
  return plain_answer(400, "not a request of HTTP/1.1");
}

/// A client over a stream: a socket, or TLS on one. First it sends requests,
/// one after the other. Its WebSocket, if it asks for one, is the same stream.
///
/// Each operation's handler holds the client. All are destroyed when the socket
/// is closed, and so is the client.
template <class Stream>
class client : public connection,
               public std::enable_shared_from_this<client<Stream>> {
public:
  template <class... Arguments>
  explicit client(server_state& state, Arguments&&... of_stream)
    : state_(state), socket_(std::forward<Arguments>(of_stream)...),
      buffer_(state.options.head_bytes + state.options.body_bytes) {
    state_.connections.insert(this);
    number = ++state_.last_number;
  }
  ~client() override {
    state_.connections.erase(this);
    set_watching(false);
  }

  void begin() override {
    wait_at_most(patience());
    if constexpr (has_tls)
      stream().async_handshake(boost::asio::ssl::stream_base::server,
                               then([](client& c) { c.read(); }));
    else
      read();
  }

  void show(const web_server::frame& newest) override {
    if (!is_watching_)
      return;
    next_ = newest;
    if (!current_)
      write_next();
  }

  void tick(clock::time_point now) override {
    if (now >= deadline_ || now >= write_deadline_)
      return close();
    controls_ = 0;
    if (is_watching_ && !is_pinging_ && now >= next_ping_)
      ping(now);
  }

  bool is_stranger() const override { return !is_known_ && !is_closed_; }

  void close() override {
    beast::error_code ignored;
    lowest().close(ignored);
    is_closed_ = true;
    set_watching(false);
  }

private:
  static constexpr bool has_tls =
    !std::is_same_v<Stream, boost::asio::ip::tcp::socket>;
  /// A frame is written in pieces, so that pings get through between them and
  /// the clock sees whether the client takes any.
  static constexpr std::size_t piece_bytes = 64 * 1024;
  /// In the system's memory, for a watcher: what is older than the newest frame
  /// should not wait there.
  static constexpr int send_buffer_bytes = 128 * 1024;
  static constexpr int most_controls = 20; // between two ticks
  static constexpr auto never = clock::time_point::max();

  // -- parts ------------------------------------------------------------------

  Stream& stream() { return socket_.next_layer(); }
  auto& lowest() { return beast::get_lowest_layer(socket_); }

  auto patience() const { return state_.options.patience; }

  void wait_at_most(clock::duration time) { deadline_ = clock::now() + time; }

  /// A handler that calls `next` if the operation succeeded, and otherwise
  /// closes the connection.
  template <class Next>
  auto then(Next next) {
    return [self = this->shared_from_this(), next](beast::error_code failed,
                                                   auto&&...) {
      if (failed)
        self->close();
      else
        next(*self);
    };
  }

  void set_watching(bool does) {
    if (does == is_watching_)
      return;
    is_watching_ = does;
    // As `watchers` says, relaxed is enough.
    if (does)
      state_.watchers.fetch_add(1, std::memory_order_relaxed);
    else
      state_.watchers.fetch_sub(1, std::memory_order_relaxed);
  }

  // -- requests ---------------------------------------------------------------

  void read() {
    parser_.emplace();
    parser_->header_limit(
      static_cast<std::uint32_t>(state_.options.head_bytes));
    parser_->body_limit(state_.options.body_bytes);
    wait_at_most(patience());
    http::async_read(
      stream(), buffer_, *parser_,
      [self = this->shared_from_this()](beast::error_code failed, std::size_t) {
        self->on_request(failed);
      });
  }

  void on_request(beast::error_code failed) {
    if (failed) {
      if (auto refusal = refuse_unread(failed)) {
        refusal->ends_connection = true;
        return answer(*std::move(refusal));
      }
      return close();
    }
    const auto& request = parser_->get();
    auto judged = state_.door.judge(head_of(request), clock::now());
    is_known_ |= judged.next != verdict::way::answer;
    if (judged.next == verdict::way::watch)
      return watch();
    if (judged.next == verdict::way::ask) {
      judged.request.body = request.body();
      judged.answer = ask(judged.request);
    }
    answer(std::move(judged));
  }

  web_response ask(const web_request& request) {
    try {
      return state_.handler(request);
    } catch (const std::exception& failure) {
      return plain_answer(500, failure.what()).answer;
    } catch (...) {
      return plain_answer(500, "the dashboard failed").answer;
    }
  }

  void answer(verdict what) {
    const auto& request = parser_->get();
    auto& out = response_.emplace();
    out.version(11);
    out.result(what.answer.status);
    for (const auto& [name, value] : common_headers())
      out.set(name, value);
    for (const auto& [name, value] : what.headers)
      out.set(name, value);
    out.set(http::field::content_type, what.answer.type);
    out.content_length(what.answer.body.size());
    out.keep_alive(!what.ends_connection && request.keep_alive());
    if (request.method() != http::verb::head)
      out.body() = std::move(what.answer.body);
    serializer_.emplace(out);
    write();
  }

  void write() {
    wait_at_most(patience()); // anew for each piece that the client takes
    http::async_write_some(stream(), *serializer_,
                           then([](client& c) { c.on_written(); }));
  }

  void on_written() {
    if (!serializer_->is_done())
      return write();
    const auto goes_on = response_->keep_alive();
    serializer_.reset();
    response_.reset();
    if (goes_on)
      read();
    else
      say_end();
  }

  /// Ends the connection so that the client gets the last answer. If it were
  /// closed while the client still sends, the client's system could drop that.
  void say_end() {
    wait_at_most(std::min<clock::duration>(patience(), linger));
    if constexpr (has_tls)
      stream().async_shutdown(then([](client& c) { c.close(); }));
    else {
      beast::error_code ignored;
      stream().shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
      drop_rest();
    }
  }

  void drop_rest() {
    stream().async_read_some(boost::asio::buffer(dropped_),
                             then([](client& c) { c.drop_rest(); }));
  }

  // -- the WebSocket ----------------------------------------------------------

  void watch() {
    if (state_.watchers.load(std::memory_order_relaxed)
        >= state_.options.watchers)
      return answer(plain_answer(503, "too many watch the run already"));
    if (buffer_.size() > 0) // before it knows that there is a WebSocket
      return answer(plain_answer(400, "bytes after the request"));
    beast::error_code ignored;
    lowest().set_option(
      boost::asio::socket_base::send_buffer_size{send_buffer_bytes}, ignored);
    set_up_socket();
    wait_at_most(patience());
    socket_.async_accept(parser_->get(),
                         then([](client& c) { c.on_accepted(); }));
  }

  void set_up_socket() {
    // `tick` looks at the clock.
    socket_.set_option(websocket::stream_base::timeout{
      websocket::stream_base::none(), websocket::stream_base::none(), false});
    socket_.set_option(
      websocket::stream_base::decorator([](websocket::response_type& answer) {
        for (const auto& [name, value] : common_headers())
          answer.set(name, value);
        answer.set(http::field::sec_websocket_protocol, live_protocol);
      }));
    socket_.control_callback([this](websocket::frame_type kind,
                                    beast::string_view) { on_control(kind); });
    socket_.read_message_max(1); // all messages are refused
    socket_.auto_fragment(false);
    socket_.binary(true);
  }

  void on_accepted() {
    parser_.reset();
    set_watching(true);
    heard();
    listen();
    if (state_.newest)
      show(state_.newest);
  }

  void heard() {
    wait_at_most(patience());
    next_ping_ = clock::now() + patience() / 2;
  }

  /// Boost answers pings while it reads.
  void listen() {
    socket_.async_read(buffer_, then([](client& c) { c.refuse_message(); }));
  }

  void on_control(websocket::frame_type kind) {
    if (++controls_ > most_controls)
      return close();
    heard();
    if (kind == websocket::frame_type::close) // Boost answers it
      stop_watching();
  }

  /// The WebSocket is being closed, which may take a moment.
  void stop_watching() {
    set_watching(false);
    wait_at_most(std::min<clock::duration>(patience(), linger));
  }

  void refuse_message() {
    stop_watching();
    socket_.async_close(
      {websocket::close_code::policy_error, "a watcher sends nothing"},
      then([](client& c) { c.close(); }));
  }

  void ping(clock::time_point now) {
    is_pinging_ = true;
    next_ping_ = now + patience() / 2;
    socket_.async_ping({}, then([](client& c) { c.is_pinging_ = false; }));
  }

  void write_next() {
    current_ = std::exchange(next_, nullptr);
    written_ = 0;
    if (current_)
      write_piece();
    else
      write_deadline_ = never;
  }

  void write_piece() {
    const auto size = std::min(piece_bytes, current_->size() - written_);
    const auto* const at = current_->data() + written_;
    written_ += size;
    write_deadline_ = clock::now() + patience();
    socket_.async_write_some(written_ == current_->size(),
                             boost::asio::buffer(at, size),
                             then([](client& c) { c.on_piece(); }));
  }

  void on_piece() {
    if (!is_watching_) // the WebSocket is being closed
      return;
    if (written_ < current_->size())
      write_piece();
    else
      write_next();
  }

  static constexpr clock::duration linger = std::chrono::seconds{1};

  server_state& state_;
  websocket::stream<Stream> socket_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  clock::time_point deadline_ = never; ///< for what the client should send
  std::array<char, 4096> dropped_;

  bool is_known_ = false; ///< has shown a secret
  bool is_closed_ = false;
  bool is_watching_ = false;
  web_server::frame current_, next_; ///< being written, and to be written then
  std::size_t written_ = 0;          ///< of the current one, in bytes
  clock::time_point write_deadline_ = never;
  clock::time_point next_ping_ = never;
  bool is_pinging_ = false;
  int controls_ = 0; ///< pings and pongs that came since the last tick
};

} // namespace troupe::dashboard

// SPDX-License-Identifier: Apache-2.0

// Messages travel in fragments. A process keeps receives for them posted, so
// that one takes a single trip. A sender must not reuse the memory of a
// fragment before it has been sent, and asking Gloo without waiting is
// impossible. Therefore each fragment says how many its sender has received,
// and the memory of those is free. A process that receives many and sends none
// sends an empty one now and then.
#include <troupe/base/threads.hpp>
#include <troupe/comm/engine/engine.hpp>
#include <troupe/comm/engine/engine_factories.hpp>
#include <troupe/comm/engine/key_store.hpp>
#include <troupe/comm/engine/message.hpp>
#include <troupe/comm/engine/no_sigpipe.hpp>

#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace troupe::comm {

namespace {

using gloo_buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

/// Gloo's waits must have an end, and one that reaches it closes all
/// connections.
constexpr std::chrono::milliseconds for_ever = std::chrono::hours{10'000};
/// A connection that was lost within a fragment is noticed by the next message
/// to the process, which comes after this time at the latest.
constexpr std::chrono::milliseconds between_signs{200};

constexpr std::uint64_t message_slot = 0; // tags are greater

struct fragment_head {
  std::uint32_t bytes = 0;
  std::uint32_t more = 0;     ///< 1: the message goes on in the next fragment
  std::uint64_t received = 0; ///< fragments that the sender has received
};
constexpr std::size_t fragment_bytes = std::size_t{34} << 10;
constexpr std::size_t most_in_fragment = fragment_bytes - sizeof(fragment_head);
/// Receives that are posted, and fragments that can be sent and not confirmed.
constexpr std::size_t fragments_in = 8, fragments_out = 16;
constexpr std::size_t most_unconfirmed = 4;

/// Gloo's message without the place in its source.
std::string text_of_failure(const std::exception& e) {
  const std::string what = e.what();
  const auto end = what.find("] ");
  return what.front() == '[' && end != what.npos ? what.substr(end + 2) : what;
}

error lost_process(std::size_t process, const std::string& why) {
  return {errc::peer_failure,
          "process " + std::to_string(process) + " is lost: " + why};
}

/// A key_store as Gloo wants it: one that waits.
class waiting_store final : public gloo::rendezvous::Store {
public:
  /// @param options must outlive all functions but `clear`
  explicit waiting_store(const gloo_group_options& options)
    : options_(options), store_(options.store),
      deadline_(std::chrono::steady_clock::now() + options.timeout) {}
  ~waiting_store() override { clear(); }

  /// Removes what this process has published. The store is not used any more.
  void clear() noexcept {
    if (const auto store = std::exchange(store_, nullptr))
      store->clear();
  }

  void set(const std::string& key, const std::vector<char>& data) override {
    store_->publish(prefix + key, data);
  }
  std::vector<char> get(const std::string& key) override {
    return wait_for(key);
  }
  void wait(const std::vector<std::string>& keys) override {
    for (auto& key : keys)
      wait_for(key);
  }
  /// Waits as long as the options say.
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds&) override {
    wait(keys);
  }

private:
  static constexpr const char* prefix = "gloo-";

  /// Throws error(peer_failure) that names the process if the value does not
  /// come in time.
  std::vector<char> wait_for(const std::string& key) {
    constexpr std::chrono::milliseconds pause{2};
    for (;;) {
      if (auto value = store_->find(prefix + key))
        return std::move(*value);
      if (options_.check)
        options_.check();
      if (std::chrono::steady_clock::now() >= deadline_)
        throw error(errc::peer_failure,
                    "processes that did not join in time: "
                      + key.substr(key.find_last_of('_') + 1));
      std::this_thread::sleep_for(pause);
    }
  }

  const gloo_group_options& options_;
  std::shared_ptr<key_store> store_;
  std::chrono::steady_clock::time_point deadline_;
};

class gloo_engine;

class gloo_transfer final : public transfer {
public:
  gloo_transfer(gloo_engine& of, std::size_t peer, bool is_send);
  ~gloo_transfer() override;

  gloo_engine& of;
  const std::size_t peer;
  const bool is_send;
  gloo_buffer buffer;
};

/// A connection to another process: its messages.
///
/// Thread rule: any thread; `serve` on one of its own.
class gloo_peer {
public:
  gloo_peer(gloo::rendezvous::Context& by, std::size_t process)
    : process_(static_cast<int>(process)) {
    for (auto& f : in_)
      f.buffer = by.createUnboundBuffer(f.bytes.data(), fragment_bytes);
    for (auto& f : out_)
      f.buffer = by.createUnboundBuffer(f.bytes.data(), fragment_bytes);
  }

  /// Receives messages until the connection is lost, or `stop`.
  void serve(engine_events& to) {
    std::string why = "its connection is closed";
    try {
      for (auto& f : in_)
        f.buffer->recv(process_, message_slot);
      for (std::size_t n = 0; receive(in_[n % fragments_in], to); ++n)
        ;
    } catch (const std::exception& e) {
      why = text_of_failure(e);
    }
    {
      std::lock_guard guard{mutex_};
      is_lost_ = true;
      if (is_stopped_)
        return;
    }
    to.lost(static_cast<std::size_t>(process_), {errc::peer_failure, why});
  }

  void post(std::span<const std::byte> message) {
    std::lock_guard guard{mutex_};
    do {
      const auto part = std::min(message.size(), most_in_fragment);
      add(message.first(part), part < message.size());
      message = message.subspan(part);
    } while (!message.empty());
  }

  /// Sends an empty fragment, to see whether the connection still exists.
  void give_sign() {
    std::lock_guard guard{mutex_};
    if (unsent_.empty() && sent_ - confirmed_ < fragments_out)
      add({}, true);
  }

  /// Makes `serve` return.
  void stop() noexcept {
    std::lock_guard guard{mutex_};
    is_stopped_ = true;
    wake();
  }

private:
  struct fragment {
    alignas(64) std::array<std::byte, fragment_bytes> bytes;
    gloo_buffer buffer;
  };
  struct unsent_fragment {
    std::vector<std::byte> bytes;
    bool more;
  };

  /// Receives a fragment, and posts its memory again. False after `stop`.
  bool receive(fragment& f, engine_events& to) {
    if (!f.buffer->waitRecv(nullptr, for_ever))
      return false;
    fragment_head head;
    std::memcpy(&head, f.bytes.data(), sizeof head);
    if (head.bytes > most_in_fragment)
      throw error(errc::peer_failure, "it sent a malformed message");
    const auto* begin = f.bytes.data() + sizeof head;
    message_.insert(message_.end(), begin, begin + head.bytes);
    {
      std::lock_guard guard{mutex_};
      confirmed_ = std::max(confirmed_, head.received);
      ++received_;
      f.buffer->recv(process_, message_slot);
      while (!unsent_.empty() && sent_ - confirmed_ < fragments_out) {
        send(unsent_.front().bytes, unsent_.front().more);
        unsent_.pop_front();
      }
      if (received_ - told_ >= most_unconfirmed
          && sent_ - confirmed_ < fragments_out)
        send({}, true);
    }
    if (head.more != 0)
      return true;
    to.arrived(static_cast<std::size_t>(process_), message_);
    message_.clear();
    return true;
  }

  void add(std::span<const std::byte> part, bool more) {
    if (is_lost_)
      return;
    if (unsent_.empty() && sent_ - confirmed_ < fragments_out)
      send(part, more);
    else
      unsent_.push_back({{part.begin(), part.end()}, more});
  }

  void send(std::span<const std::byte> part, bool more) {
    auto& f = out_[sent_ % fragments_out];
    const fragment_head head{static_cast<std::uint32_t>(part.size()),
                             more ? 1u : 0u, received_};
    std::memcpy(f.bytes.data(), &head, sizeof head);
    std::ranges::copy(part, f.bytes.begin() + sizeof head);
    ++sent_;
    told_ = received_;
    const no_sigpipe guard;
    try {
      f.buffer->send(process_, message_slot, 0, sizeof head + part.size());
    } catch (const gloo::Exception&) {
      is_lost_ = true;
      wake();
    }
  }

  /// Only one of them is waited for.
  void wake() {
    for (auto& f : in_)
      f.buffer->abortWaitRecv();
  }

  const int process_;
  message_bytes message_; // used by `serve` alone
  std::array<fragment, fragments_in> in_;

  std::mutex mutex_; // guards all that follow
  std::array<fragment, fragments_out> out_;
  std::deque<unsent_fragment> unsent_;
  std::uint64_t sent_ = 0;
  std::uint64_t confirmed_ = 0; // of these
  std::uint64_t received_ = 0;
  std::uint64_t told_ = 0; // to the process, of these
  bool is_lost_ = false;
  bool is_stopped_ = false;
};

class gloo_engine final : public engine, private engine_events {
public:
  explicit gloo_engine(const gloo_group_options& options)
    : engine(options.process, options.processes), store_(options) {
    if (processes() > 1)
      connect(options);
  }
  ~gloo_engine() override { close(); }

  std::string_view name() const noexcept override { return "gloo"; }

  void open(engine_events& to) override {
    events_ = &to;
    has_come_.resize(processes());
    peers_.resize(processes());
    for (std::size_t p = 0; p < processes(); ++p)
      if (p != process())
        peers_[p] = std::make_unique<gloo_peer>(*context_, p);
    for (auto& peer : peers_)
      if (peer)
        threads_.push_back(start_thread("troupe-gloo", [this, &peer] {
          const no_sigpipe guard;
          peer->serve(*this);
        }));
    if (processes() > 1)
      threads_.push_back(start_thread("troupe-gloo", [this] { watch(); }));
  }

  void post(std::size_t to, std::span<const std::byte> message) override {
    peers_[to]->post(message);
  }

  std::unique_ptr<transfer> send(std::size_t to, std::uint32_t tag,
                                 std::span<const std::byte> bytes) override {
    auto made = std::make_unique<gloo_transfer>(*this, to, true);
    run(to, [&] {
      made->buffer = context_->createUnboundBuffer(
        const_cast<std::byte*>(bytes.data()), bytes.size());
      made->buffer->send(static_cast<int>(to), tag);
    });
    return made;
  }

  std::unique_ptr<transfer> receive(std::size_t from, std::uint32_t tag,
                                    std::span<std::byte> bytes) override {
    auto made = std::make_unique<gloo_transfer>(*this, from, false);
    run(from, [&] {
      made->buffer = context_->createUnboundBuffer(bytes.data(), bytes.size());
      made->buffer->recv(static_cast<int>(from), tag);
    });
    return made;
  }

  void wait(transfer& started) override {
    auto& t = static_cast<gloo_transfer&>(started);
    {
      std::lock_guard guard{mutex_};
      require_running();
      waited_ = &t;
    }
    bool is_over = false;
    run(t.peer, [&] {
      is_over = t.is_send ? t.buffer->waitSend(nullptr, for_ever)
                          : t.buffer->waitRecv(nullptr, for_ever);
    });
    std::lock_guard guard{mutex_};
    waited_ = nullptr;
    if (!is_over)
      require_running();
  }

  void stop() noexcept override {
    std::lock_guard guard{mutex_};
    is_stopped_ = true;
    if (!waited_)
      return;
    if (waited_->is_send)
      waited_->buffer->abortWaitSend();
    else
      waited_->buffer->abortWaitRecv();
  }

  void close() noexcept override {
    stop();
    {
      std::lock_guard guard{mutex_};
      is_closed_ = true;
      closed_.notify_all();
    }
    for (auto& peer : peers_)
      if (peer)
        peer->stop();
    for (auto& thread : threads_)
      thread.join();
    threads_.clear();
    store_.clear();
    peers_.clear();
    for (auto* t : transfers_)
      t->buffer.reset();
    context_.reset();
    device_.reset();
  }

private:
  friend class gloo_transfer;

  /// The first message of a process says that it has found all others.
  void arrived(std::size_t from, std::span<const std::byte> message) override {
    if (!std::exchange(has_come_[from], 1)
        && came_.fetch_add(1, std::memory_order_acq_rel) + 2 == processes())
      store_.clear();
    events_->arrived(from, message);
  }
  void lost(std::size_t process, const error& why) override {
    events_->lost(process, why);
  }

  void connect(const gloo_group_options& options) {
    using namespace std::chrono_literals;
    // A connection is waited for five times as long, and nothing can end that
    // wait. All processes are there: they have published their addresses.
    const auto patience =
      std::clamp<std::chrono::milliseconds>(options.timeout / 5, 1ms, 4s);
    gloo::transport::tcp::attr at;
    at.hostname = options.address;
    const no_sigpipe guard; // also for the thread that this starts
    try {
      device_ = gloo::transport::tcp::CreateDevice(at);
    } catch (const std::exception& e) {
      throw error(errc::io_failure,
                  "Gloo cannot use " + at.hostname + ": " + text_of_failure(e));
    }
    context_ = std::make_shared<gloo::rendezvous::Context>(
      static_cast<int>(process()), static_cast<int>(processes()));
    context_->setTimeout(patience);
    try {
      context_->connectFullMesh(store_, device_);
    } catch (const gloo::Exception& e) {
      throw error(errc::peer_failure,
                  "a process does not connect by Gloo, which needs all "
                  "ports between the hosts: "
                    + text_of_failure(e));
    }
  }

  /// Runs a function of Gloo that can fail if the process is lost.
  template <class Act>
  void run(std::size_t peer, Act act) {
    const no_sigpipe guard;
    try {
      act();
    } catch (const gloo::Exception& e) {
      std::lock_guard held{mutex_};
      waited_ = nullptr;
      throw lost_process(peer, text_of_failure(e));
    }
  }

  void require_running() const {
    if (is_stopped_)
      throw error(errc::peer_failure, "the group has stopped");
  }

  void watch() {
    const no_sigpipe guard;
    std::unique_lock lock{mutex_};
    while (
      !closed_.wait_for(lock, between_signs, [this] { return is_closed_; })) {
      lock.unlock();
      for (auto& peer : peers_)
        if (peer)
          peer->give_sign();
      lock.lock();
    }
  }

  waiting_store store_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::vector<std::unique_ptr<gloo_peer>> peers_; // by process
  std::vector<std::thread> threads_;
  engine_events* events_ = nullptr;
  std::vector<char> has_come_; // by process: its first message
  std::atomic<std::size_t> came_{0};

  std::mutex mutex_; // guards all that follow
  std::condition_variable closed_;
  std::set<gloo_transfer*> transfers_;
  gloo_transfer* waited_ = nullptr;
  bool is_stopped_ = false;
  bool is_closed_ = false;
};

gloo_transfer::gloo_transfer(gloo_engine& engine, std::size_t process,
                             bool sends)
  : of(engine), peer(process), is_send(sends) {
  std::lock_guard guard{of.mutex_};
  of.transfers_.insert(this);
}

gloo_transfer::~gloo_transfer() {
  std::lock_guard guard{of.mutex_};
  of.transfers_.erase(this);
}

} // namespace

extern "C" engine* troupe_make_gloo_engine(const gloo_group_options& options) {
  return std::make_unique<gloo_engine>(options).release();
}

} // namespace troupe::comm

// SPDX-License-Identifier: Apache-2.0

// Gloo moves values. Messages have connections of their own (message_links):
// through Gloo, its thread would receive them and wake another one, which takes
// as long as the way of a message itself.
#include <troupe/comm/engine/engine.hpp>
#include <troupe/comm/engine/engine_factories.hpp>
#include <troupe/comm/engine/key_store.hpp>
#include <troupe/comm/engine/link_meeting.hpp>
#include <troupe/comm/engine/message_links.hpp>
#include <troupe/comm/engine/no_sigpipe.hpp>

#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::comm {

namespace {

using gloo_buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

/// Gloo's waits must have an end, and one that reaches it closes all
/// connections.
constexpr std::chrono::milliseconds for_ever = std::chrono::hours{10'000};

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
    return wait_for_key(*store_, prefix + key, deadline_, options_.check);
  }
  void wait(const std::vector<std::string>& keys) override {
    for (auto& key : keys)
      get(key);
  }
  /// Waits as long as the options say.
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds&) override {
    wait(keys);
  }

private:
  static constexpr const char* prefix = "gloo-";

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
    if (processes() > 1)
      links_.emplace(std::move(sockets_), static_cast<engine_events&>(*this));
  }

  void post(std::size_t to, std::span<const std::byte> message) override {
    links_->post(to, message);
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
    links_.reset();
    store_.clear();
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
    const link_meeting_options links{
      process(), processes(), options.address,
      std::chrono::steady_clock::now() + options.timeout, options.check};
    link_meeting meeting{links, *options.store};
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
    sockets_ = meeting.connect_all();
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

  waiting_store store_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::vector<descriptor> sockets_; // by process, until `open`
  std::optional<message_links> links_;
  engine_events* events_ = nullptr;
  std::vector<char> has_come_; // by process: its first message
  std::atomic<std::size_t> came_{0};

  std::mutex mutex_; // guards all that follow
  std::set<gloo_transfer*> transfers_;
  gloo_transfer* waited_ = nullptr;
  bool is_stopped_ = false;
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

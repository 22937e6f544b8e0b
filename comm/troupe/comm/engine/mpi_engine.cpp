// SPDX-License-Identifier: Apache-2.0

// MPI has no thread of its own: it makes progress while somebody asks it. The
// thread that waits for a transfer asks, threads that look do, and otherwise
// the engine's own thread. Processes can share cores, so all pause between
// questions.
#include <troupe/base/spin.hpp>
#include <troupe/base/threads.hpp>
#include <troupe/comm/engine/engine.hpp>
#include <troupe/comm/engine/engine_factories.hpp>
#include <troupe/comm/engine/message.hpp>

#include <mpi.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::comm {

namespace {

/// Each group has tags of its own: what one has not received must not reach the
/// next one. The first is for messages, the others are for transfers.
constexpr int tags_of_group = 8;

/// All calls of MPI are made with this lock: one thread at a time.
std::mutex& mpi_mutex() {
  static std::mutex one;
  return one;
}

/// Throws if a function of MPI has failed.
void require_success(int code) {
  if (code == MPI_SUCCESS)
    return;
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw error(errc::peer_failure, "MPI: " + std::string{text.data()});
}

void initialize() {
  int is_initialized = 0, level = 0;
  MPI_Initialized(&is_initialized);
  if (is_initialized == 0) {
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
    std::atexit([] {
      int is_finalized = 0;
      MPI_Finalized(&is_finalized);
      if (is_finalized == 0)
        MPI_Finalize();
    });
  } else {
    MPI_Query_thread(&level);
  }
  if (level < MPI_THREAD_SERIALIZED)
    throw error(errc::invalid_argument,
                "group over MPI: MPI was initialized for a single thread, "
                "expected MPI_THREAD_SERIALIZED");
}

/// Pauses of a thread that asks again and again: short ones at first.
class patience {
public:
  /// @param spins number of first pauses in which the thread keeps its core
  explicit patience(int spins) : spins_(spins) {}
  void pause() {
    if (++rounds_ <= spins_)
      relax();
    else if (rounds_ < yields)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(nap);
  }
  void begin_anew() noexcept { rounds_ = 0; }

private:
  static constexpr int yields = 2000;
  static constexpr std::chrono::microseconds nap{50};
  int spins_;
  int rounds_ = 0;
};

class mpi_engine;

class mpi_transfer final : public transfer {
public:
  explicit mpi_transfer(mpi_engine& engine);
  ~mpi_transfer() override;

  mpi_engine& of;
  MPI_Request request = MPI_REQUEST_NULL;
};

class mpi_engine final : public engine {
public:
  mpi_engine(std::size_t process, std::size_t processes, MPI_Comm by,
             int first_tag)
    : engine(process, processes), by_(by), first_tag_(first_tag) {}
  ~mpi_engine() override { close(); }

  std::string_view name() const noexcept override { return "mpi"; }

  void open(engine_events& to) override {
    events_ = &to;
    thread_ = start_thread("troupe-mpi", [this] { serve(); });
  }

  void post(std::size_t to, std::span<const std::byte> message) override {
    std::lock_guard guard{mpi_mutex()};
    auto& made = posted_.emplace_back();
    made.bytes.assign(message.begin(), message.end());
    MPI_Isend(made.bytes.data(), static_cast<int>(made.bytes.size()), MPI_BYTE,
              static_cast<int>(to), first_tag_, by_, &made.request);
    is_active_.store(true, std::memory_order_relaxed);
  }

  std::unique_ptr<transfer> send(std::size_t to, std::uint32_t tag,
                                 std::span<const std::byte> bytes) override {
    auto made = std::make_unique<mpi_transfer>(*this);
    std::lock_guard guard{mpi_mutex()};
    require_success(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()),
                              MPI_BYTE, static_cast<int>(to),
                              first_tag_ + static_cast<int>(tag), by_,
                              &made->request));
    return made;
  }

  std::unique_ptr<transfer> receive(std::size_t from, std::uint32_t tag,
                                    std::span<std::byte> bytes) override {
    auto made = std::make_unique<mpi_transfer>(*this);
    std::lock_guard guard{mpi_mutex()};
    require_success(MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()),
                              MPI_BYTE, static_cast<int>(from),
                              first_tag_ + static_cast<int>(tag), by_,
                              &made->request));
    return made;
  }

  void wait(transfer& started) override {
    auto& t = static_cast<mpi_transfer&>(started);
    constexpr int spins = 50;
    for (patience p{spins};; p.pause()) {
      if (is_stopped_.load(std::memory_order_acquire))
        throw error(errc::peer_failure, "the group has stopped");
      {
        std::lock_guard guard{mpi_mutex()};
        int is_over = 0;
        require_success(MPI_Test(&t.request, &is_over, MPI_STATUS_IGNORE));
        if (is_over != 0)
          return;
      }
      progress();
    }
  }

  void stop() noexcept override {
    is_stopped_.store(true, std::memory_order_release);
  }

  void close() noexcept override {
    if (!thread_.joinable())
      return;
    stop();
    is_closed_.store(true, std::memory_order_release);
    thread_.join();
    finish_posted();
    std::lock_guard guard{mpi_mutex()};
    for (auto* t : transfers_)
      if (t->request != MPI_REQUEST_NULL) {
        MPI_Cancel(&t->request);
        MPI_Request_free(&t->request);
      }
    if (incoming_)
      MPI_Request_free(&incoming_request_);
    if (incoming_ || !posted_.empty()) // MPI can still use this memory
      new std::pair{std::move(posted_), std::move(incoming_)};
  }

  bool progress() override {
    std::unique_lock one{polling_, std::try_to_lock};
    if (!one)
      return false;
    bool any = false;
    while (const auto got = poll()) {
      any = true;
      events_->arrived(got->first, got->second);
    }
    return any;
  }
  void begin_looking() override { count(lookers_, 1); }
  void end_looking() override { count(lookers_, -1); }

private:
  friend class mpi_transfer;

  struct posted_message {
    message_bytes bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  using received_message = std::pair<std::size_t, message_bytes>;

  /// Forgets messages that have been sent, and returns one that has arrived.
  std::optional<received_message> poll() {
    std::lock_guard guard{mpi_mutex()};
    forget_sent();
    int is_over = 0;
    if (!incoming_) {
      MPI_Message message;
      MPI_Status status;
      MPI_Improbe(MPI_ANY_SOURCE, first_tag_, by_, &is_over, &message, &status);
      if (is_over == 0)
        return std::nullopt;
      int bytes = 0;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      incoming_.emplace();
      incoming_->first = static_cast<std::size_t>(status.MPI_SOURCE);
      incoming_->second.resize(static_cast<std::size_t>(bytes));
      MPI_Imrecv(incoming_->second.data(), bytes, MPI_BYTE, &message,
                 &incoming_request_);
    }
    MPI_Test(&incoming_request_, &is_over, MPI_STATUS_IGNORE);
    if (is_over == 0)
      return std::nullopt;
    is_active_.store(true, std::memory_order_relaxed);
    return std::exchange(incoming_, std::nullopt);
  }

  void forget_sent() {
    int is_over = 1;
    while (!posted_.empty() && is_over != 0) {
      MPI_Test(&posted_.front().request, &is_over, MPI_STATUS_IGNORE);
      if (is_over != 0)
        posted_.pop_front();
    }
  }

  /// Sends the last messages, if the others take them.
  void finish_posted() noexcept {
    constexpr int most_rounds = 500;
    for (int round = 0; round < most_rounds; ++round) {
      {
        std::lock_guard guard{mpi_mutex()};
        forget_sent();
        if (posted_.empty())
          return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }

  /// The engine's own thread. It lets others have its core, which may be the
  /// ones that it works for, and asks seldom while they do.
  void serve() {
    constexpr std::chrono::milliseconds while_others_ask{1};
    for (patience p{0}; !is_closed_.load(std::memory_order_acquire);) {
      progress();
      if (is_active_.exchange(false, std::memory_order_relaxed))
        p.begin_anew();
      std::unique_lock lock{asking_mutex_};
      const auto others_ask = [this] {
        return lookers_ > 0
               || (under_way_ > 0
                   && !is_stopped_.load(std::memory_order_relaxed));
      };
      if (others_ask()) {
        asked_.wait_for(lock, while_others_ask, [&] { return !others_ask(); });
        continue;
      }
      lock.unlock();
      p.pause();
    }
  }

  void count(int& of, int change) {
    std::lock_guard guard{asking_mutex_};
    of += change;
    if (of == 0)
      asked_.notify_one();
  }

  MPI_Comm by_;
  int first_tag_;
  engine_events* events_ = nullptr;
  std::thread thread_;
  std::atomic<bool> is_active_{false}; // relaxed: says how often to ask
  // Stored with release, loaded with acquire.
  std::atomic<bool> is_stopped_{false}, is_closed_{false};

  std::mutex asking_mutex_; // guards the next three
  std::condition_variable asked_;
  int lookers_ = 0;
  int under_way_ = 0; // transfers

  std::mutex polling_; // held while messages are passed on, in order
  // The lock of MPI guards all that follow.
  std::list<posted_message> posted_;
  std::optional<received_message> incoming_;
  MPI_Request incoming_request_ = MPI_REQUEST_NULL;
  std::list<mpi_transfer*> transfers_;
};

mpi_transfer::mpi_transfer(mpi_engine& engine) : of(engine) {
  std::lock_guard guard{mpi_mutex()};
  of.transfers_.push_back(this);
  of.count(of.under_way_, 1);
}

mpi_transfer::~mpi_transfer() {
  std::lock_guard guard{mpi_mutex()};
  of.transfers_.remove(this);
  of.count(of.under_way_, -1);
}

std::unique_ptr<mpi_engine> connect_by_mpi() {
  std::lock_guard guard{mpi_mutex()};
  initialize();
  static MPI_Comm by = MPI_COMM_NULL;
  static int groups = 0;
  if (by == MPI_COMM_NULL) {
    require_success(MPI_Comm_dup(MPI_COMM_WORLD, &by));
    MPI_Comm_set_errhandler(by, MPI_ERRORS_RETURN);
  }
  int process = 0, processes = 1;
  MPI_Comm_rank(by, &process);
  MPI_Comm_size(by, &processes);
  constexpr int most_groups = 1 << 20;
  const auto first_tag = groups++ % most_groups * tags_of_group;
  return std::make_unique<mpi_engine>(static_cast<std::size_t>(process),
                                      static_cast<std::size_t>(processes), by,
                                      first_tag);
}

} // namespace

extern "C" engine* troupe_make_mpi_engine() {
  return connect_by_mpi().release();
}

} // namespace troupe::comm

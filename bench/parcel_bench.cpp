// SPDX-License-Identifier: Apache-2.0
// Measures the round trip of an empty parcel, by which one process tells
// another that a value is ready, between two processes on a core each: through
// shared memory while threads of both look for it (looking), or sleep (asleep),
// over Gloo, in a group over Gloo that knows that both are on one host. For
// comparison, 64 bytes over a plain TCP socket, which either the thread that
// waits reads itself, or a thread of its own that then wakes it: so must every
// program that computes while messages come. All take turns, so that other load
// on the machine affects them equally.
#include <troupe/base/cores.hpp>
#include <troupe/base/error.hpp>
#include <troupe/comm/communicator.hpp>
#include <troupe/comm/engine/join.hpp>
#include <troupe/comm/host_identity.hpp>
#include <troupe/comm/shm/join.hpp>
#include <troupe/comm/shm/process_memory.hpp>

#include <CLI/CLI.hpp>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace troupe;

double now_us() {
  return std::chrono::duration<double, std::micro>(
           std::chrono::steady_clock::now().time_since_epoch())
    .count();
}

double median(std::vector<double> values) {
  const auto middle =
    values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void require(bool holds, const char* what) {
  if (holds)
    return;
  std::perror(what);
  std::exit(1);
}

/// Rank 1 answers each parcel within the call; rank 0 counts the answers.
class players final : public comm::parcel_receiver {
public:
  explicit players(std::unique_ptr<comm::communicator> end)
    : end_(std::move(end)) {
    end_->open_parcels(*this);
  }
  ~players() override { end_->close_parcels(); }
  players(const players&) = delete;
  players& operator=(const players&) = delete;

  void arrived(std::size_t from, const comm::parcel_label& label,
               std::span<const std::byte>) noexcept override {
    if (end_->rank() == 1)
      end_->send_parcel(from, {label, {}, 0});
    came_.fetch_add(1, std::memory_order_release);
    came_.notify_one();
  }
  void malformed(std::size_t, const error&) noexcept override {}

  /// Plays so many round trips; the other process does, too.
  void play(std::size_t trips, bool looks) {
    if (looks)
      end_->begin_looking();
    for (std::size_t i = 0; i < trips; ++i) {
      const auto seen = came_.load(std::memory_order_acquire);
      if (end_->rank() == 0)
        end_->send_parcel(1, {{i, 0}, {}, 0});
      if (looks)
        while (came_.load(std::memory_order_acquire) < total_ + i + 1)
          end_->progress();
      else if (end_->rank() == 0)
        came_.wait(seen, std::memory_order_acquire);
    }
    total_ += trips;
    while (came_.load(std::memory_order_acquire) < total_)
      came_.wait(came_.load(std::memory_order_acquire));
    if (looks)
      end_->end_looking();
  }

private:
  std::unique_ptr<comm::communicator> end_;
  std::atomic<std::size_t> came_{0};
  std::size_t total_ = 0;
};

/// A connection on loopback.
class plain_socket {
public:
  plain_socket(std::size_t rank, int listener, const sockaddr_in& at)
    : rank_(rank) {
    if (rank == 0) {
      socket_ = ::accept(listener, nullptr, nullptr);
      require(socket_ >= 0, "accept");
    } else {
      socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
      require(
        ::connect(socket_, reinterpret_cast<const sockaddr*>(&at), sizeof at)
          == 0,
        "connect");
    }
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~plain_socket() { ::close(socket_); }
  plain_socket(const plain_socket&) = delete;
  plain_socket& operator=(const plain_socket&) = delete;

  void play(std::size_t trips) {
    std::array<char, 64> bytes{};
    for (std::size_t i = 0; i < trips; ++i) {
      if (rank_ == 0)
        send(bytes);
      receive(bytes);
      if (rank_ == 1)
        send(bytes);
    }
  }

  void send(const std::array<char, 64>& bytes) const {
    require(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL)
              == static_cast<ssize_t>(bytes.size()),
            "send");
  }
  /// False if the other side has sent the last one.
  bool receive(std::array<char, 64>& bytes) const {
    const auto came = ::recv(socket_, bytes.data(), bytes.size(), MSG_WAITALL);
    require(came == 0 || came == static_cast<ssize_t>(bytes.size()), "recv");
    return came > 0;
  }
  void send_no_more() const { ::shutdown(socket_, SHUT_WR); }
  std::size_t rank() const { return rank_; }

private:
  std::size_t rank_;
  int socket_ = -1;
};

/// A connection on loopback that a thread reads, as `players` are told of
/// parcels: rank 1 answers on this thread, rank 0 counts the answers.
class served_socket {
public:
  served_socket(std::size_t rank, int listener, const sockaddr_in& at)
    : socket_(rank, listener, at), thread_([this] { serve(); }) {}
  ~served_socket() {
    socket_.send_no_more();
    thread_.join();
  }
  served_socket(const served_socket&) = delete;
  served_socket& operator=(const served_socket&) = delete;

  void play(std::size_t trips) {
    for (std::size_t i = 0; i < trips && socket_.rank() == 0; ++i) {
      const auto seen = came_.load(std::memory_order_acquire);
      socket_.send({});
      came_.wait(seen, std::memory_order_acquire);
    }
    total_ += trips;
    while (came_.load(std::memory_order_acquire) < total_)
      came_.wait(came_.load(std::memory_order_acquire));
  }

private:
  void serve() {
    std::array<char, 64> bytes{};
    while (socket_.receive(bytes)) {
      if (socket_.rank() == 1)
        socket_.send(bytes);
      came_.fetch_add(1, std::memory_order_release);
      came_.notify_one();
    }
  }

  plain_socket socket_;
  std::atomic<std::size_t> came_{0};
  std::size_t total_ = 0;
  std::thread thread_;
};

/// A group over Gloo.
/// @param on set if the processes tell each other their host
std::unique_ptr<players>
join_over_gloo(std::size_t rank, const std::string& folder,
               std::optional<comm::host_group_options> on) {
  std::filesystem::create_directories(folder); // the other process may, too
  comm::gloo_group_options options;
  options.store = comm::make_folder_store(folder);
  options.process = rank;
  options.processes = 2;
  options.hosts = std::move(on);
  return std::make_unique<players>(
    std::move(comm::join_gloo_group(options).front()));
}

struct plan {
  std::size_t trips = 2000;
  std::size_t rounds = 15;
};

/// One process's side.
void measure(std::size_t rank, const plan& wanted, const std::string& folder,
             int listener, const sockaddr_in& at) {
  plain_socket tcp{rank, listener, at};
  served_socket served{rank, listener, at};
  players shm{
    std::move(comm::join_shm_group(
                {.path = folder + "/socket", .process = rank, .processes = 2})
                .front())};
  std::unique_ptr<players> gloo, gloo_host;
  if (comm::gloo_support().is_built) {
    gloo = join_over_gloo(rank, folder + "/gloo", std::nullopt);
    gloo_host = join_over_gloo(
      rank, folder + "/gloo_host",
      comm::host_group_options{comm::host_identity(), folder + "/host",
                               std::make_shared<comm::process_memory>()});
  }
  struct contender {
    const char* name;
    std::function<void(std::size_t)> play;
    std::vector<double> us = {};
  };
  std::vector<contender> all{
    {"shm_looking", [&](std::size_t n) { shm.play(n, true); }},
    {"shm_asleep", [&](std::size_t n) { shm.play(n, false); }},
    {"tcp_socket", [&](std::size_t n) { tcp.play(n); }},
    {"tcp_socket_thread", [&](std::size_t n) { served.play(n); }}};
  if (gloo) {
    all.push_back({"gloo", [&](std::size_t n) { gloo->play(n, false); }});
    all.push_back(
      {"gloo_host_looking", [&](std::size_t n) { gloo_host->play(n, true); }});
    all.push_back(
      {"gloo_host_asleep", [&](std::size_t n) { gloo_host->play(n, false); }});
  }
  for (std::size_t round = 0; round <= wanted.rounds; ++round)
    for (auto& c : all) {
      c.play(10); // both have arrived
      const auto start = now_us();
      c.play(wanted.trips);
      if (round > 0) // the first is a warm-up
        c.us.push_back((now_us() - start) / static_cast<double>(wanted.trips));
    }
  for (auto& c : all)
    if (rank == 0)
      std::printf("contender=%s round_trip_us=%.2f\n", c.name, median(c.us));
  tcp.play(1); // ends together
}

} // namespace

int main(int argc, char** argv) {
  plan wanted;
  CLI::App app{"round trip of an empty parcel between two processes"};
  app.add_option("--trips", wanted.trips, "round trips per turn")
    ->capture_default_str();
  app.add_option("--rounds", wanted.rounds, "turns of each contender")
    ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  require(::bind(listener, reinterpret_cast<sockaddr*>(&at), size) == 0,
          "bind");
  require(::listen(listener, 2) == 0, "listen");
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);

  auto folder =
    (std::filesystem::temp_directory_path() / "parcel-bench-XXXXXX").string();
  require(::mkdtemp(folder.data()) != nullptr, "mkdtemp");
  const auto other = ::fork();
  require(other >= 0, "fork");
  if (other == 0)
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::size_t rank = other == 0 ? 1 : 0;
  pin_this_thread(rank);
  measure(rank, wanted, folder, listener, at);
  if (other == 0)
    ::_exit(0);
  int status = 0;
  ::waitpid(other, &status, 0);
  std::filesystem::remove_all(folder);
  return status == 0 ? 0 : 1;
}

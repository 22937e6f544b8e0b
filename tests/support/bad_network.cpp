// SPDX-License-Identifier: Apache-2.0
#include "bad_network.hpp"

#include <troupe/base/random.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <queue>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::test {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t longest_packet = 2048;

/// A host: its namespace, and its end of the network.
struct host_ends {
  int name_space = -1;
  int packets = -1; ///< a TUN device
};

ifreq request_for(const char* name) {
  ifreq request{};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  return request;
}

sockaddr in_words(const std::string& address) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  ::inet_pton(AF_INET, address.c_str(), &at.sin_addr);
  sockaddr result;
  std::memcpy(&result, &at, sizeof at);
  return result;
}

bool bring_up(int socket, const char* name) {
  auto request = request_for(name);
  if (::ioctl(socket, SIOCGIFFLAGS, &request) != 0)
    return false;
  request.ifr_flags |= IFF_UP;
  return ::ioctl(socket, SIOCSIFFLAGS, &request) == 0;
}

/// Gives the calling thread a namespace with a TUN device. False without the
/// rights to do so.
bool make_host(const std::string& address, host_ends& made) {
  if (::unshare(CLONE_NEWNET) != 0)
    return false;
  made.packets = ::open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  auto tun = request_for("tun0");
  tun.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (made.packets < 0 || ::ioctl(made.packets, TUNSETIFF, &tun) != 0)
    return false;
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  auto at = request_for("tun0"), mask = at;
  at.ifr_addr = in_words(address);
  mask.ifr_netmask = in_words("255.255.255.0");
  const bool is_up = ::ioctl(socket, SIOCSIFADDR, &at) == 0
                     && ::ioctl(socket, SIOCSIFNETMASK, &mask) == 0
                     && bring_up(socket, "tun0") && bring_up(socket, "lo");
  ::close(socket);
  made.name_space = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  return is_up && made.name_space >= 0;
}

void close_all(const host_ends& host) {
  for (int file : {host.name_space, host.packets})
    if (file >= 0)
      ::close(file);
}

} // namespace

/// Carries the packets on a thread of its own.
class bad_network::pump {
public:
  pump(std::size_t count, std::uint64_t seed) : draw_(seed), hosts_(count) {
    bool is_made = true;
    for (std::size_t h = 0; h < count; ++h)
      std::thread{[&, h] { // which then ends, with its namespace
        is_made = make_host(address_of(h), hosts_[h]) && is_made;
      }}
        .join();
    wakes_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!is_made || wakes_ < 0)
      throw std::runtime_error("no network of the test's own");
    thread_ = std::thread{[this] { run(); }};
  }

  ~pump() {
    {
      std::lock_guard guard{mutex_};
      ends_ = true;
    }
    wake();
    thread_.join();
    for (auto& host : hosts_)
      close_all(host);
    ::close(wakes_);
  }

  void enter(std::size_t host) const {
    if (::setns(hosts_[host].name_space, CLONE_NEWNET) != 0)
      throw std::runtime_error("cannot enter a host");
  }

  template <class Change>
  void change(Change act) {
    std::lock_guard guard{mutex_};
    act(faults_, closed_);
  }

  network_counts counts() {
    std::lock_guard guard{mutex_};
    return counts_;
  }

private:
  struct packet {
    clock::time_point due;
    std::uint64_t number; ///< packets that are due at once stay in order
    std::size_t to;
    std::vector<char> bytes;
    bool operator<(const packet& other) const { // the first one is on top
      return std::pair{due, number} > std::pair{other.due, other.number};
    }
  };

  void wake() const {
    const std::uint64_t one = 1;
    (void)!::write(wakes_, &one, sizeof one);
  }

  void run() {
    std::vector<pollfd> files;
    for (auto& host : hosts_)
      files.push_back({host.packets, POLLIN, 0});
    files.push_back({wakes_, POLLIN, 0});
    for (;;) {
      ::poll(files.data(), files.size(), pause());
      std::lock_guard guard{mutex_};
      if (ends_)
        return;
      for (std::size_t h = 0; h < hosts_.size(); ++h)
        take_from(h);
      send_due();
    }
  }

  /// Milliseconds until the next packet is due.
  int pause() {
    std::lock_guard guard{mutex_};
    if (waiting_.empty())
      return 1000;
    const auto left =
      std::chrono::ceil<milliseconds>(waiting_.top().due - clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }

  void take_from(std::size_t from) {
    std::vector<char> bytes(longest_packet);
    for (;;) {
      const auto size =
        ::read(hosts_[from].packets, bytes.data(), bytes.size());
      if (size <= 0)
        return;
      // The last byte of an IPv4 packet's destination; all else is dropped.
      if (size < 20 || (bytes[0] & 0xf0) != 0x40)
        continue;
      const auto to =
        static_cast<std::size_t>(static_cast<unsigned char>(bytes[19]) - 1);
      if (to < hosts_.size() && !closed_.contains({from, to}))
        carry(to, {bytes.begin(), bytes.begin() + size});
    }
  }

  void carry(std::size_t to, std::vector<char> bytes) {
    if (happens(faults_.lost)) {
      ++counts_.lost;
      return;
    }
    auto due = clock::now() + milliseconds{faults_.delay_ms};
    if (happens(faults_.late)) {
      ++counts_.late;
      due += milliseconds{5};
    }
    if (faults_.rate > 0) {
      constexpr milliseconds most_queued{250};
      free_ = std::max(free_, clock::now());
      if (free_ - clock::now() > most_queued) {
        ++counts_.lost;
        return;
      }
      free_ +=
        std::chrono::nanoseconds{bytes.size() * 1'000'000'000 / faults_.rate};
      due = std::max(due, free_);
    }
    if (happens(faults_.doubled)) {
      ++counts_.doubled;
      waiting_.push({due, ++number_, to, bytes});
    }
    ++counts_.carried;
    counts_.bytes += bytes.size();
    waiting_.push({due, ++number_, to, std::move(bytes)});
  }

  bool happens(unsigned percent) { return draw_.below(100) < percent; }

  void send_due() {
    while (!waiting_.empty() && waiting_.top().due <= clock::now()) {
      const auto& next = waiting_.top();
      (void)!::write(hosts_[next.to].packets, next.bytes.data(),
                     next.bytes.size());
      waiting_.pop();
    }
  }

  std::mutex mutex_; // guards all but the hosts
  network_faults faults_;
  network_counts counts_;
  std::set<std::pair<std::size_t, std::size_t>> closed_;
  splitmix64 draw_;
  std::priority_queue<packet> waiting_;
  std::uint64_t number_ = 0;
  clock::time_point free_{}; // when the link has sent what it has taken
  bool ends_ = false;

  std::vector<host_ends> hosts_;
  int wakes_ = -1;
  std::thread thread_;
};

bool bad_network::is_possible() {
  const auto child = ::fork();
  if (child == 0) {
    host_ends host;
    ::_exit(make_host(address_of(0), host) ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  return status == 0;
}

bad_network::bad_network(std::size_t hosts, std::uint64_t seed)
  : pump_(std::make_unique<pump>(hosts, seed)) {}

bad_network::~bad_network() = default;

void bad_network::enter(std::size_t host) const {
  pump_->enter(host);
}

void bad_network::set(const network_faults& faults) {
  pump_->change([&](network_faults& now, auto&) { now = faults; });
}

network_counts bad_network::counts() const {
  return pump_->counts();
}

void bad_network::close(std::size_t from, std::size_t to) {
  pump_->change([&](auto&, auto& closed) { closed.emplace(from, to); });
}

void bad_network::open() {
  pump_->change([](auto&, auto& closed) { closed.clear(); });
}

} // namespace troupe::test

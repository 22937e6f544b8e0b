// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/shm/meeting.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/files/descriptor.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

namespace troupe::comm::shm {

namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// How long a process that has connected may take to say who it is.
constexpr auto patience = 2s;
constexpr auto pause = 2ms; // before the next try to connect

// -- messages -----------------------------------------------------------------

constexpr std::uint64_t magic = 0x31'6d'68'73'70'72'74u; // "trpshm1"

/// What a process says to process 0, with its segment.
struct hello {
  std::uint64_t begin = magic;
  std::uint64_t common_bytes = 0; // equal programs share as much
  std::uint32_t process = 0;
  std::uint32_t processes = 0;
  rank_mask ranks = 0;
};

/// The answer, with the common segment and the segments of all processes; or a
/// refusal, without files.
struct answer {
  std::uint64_t begin = magic;
  std::array<rank_mask, max_ranks> ranks{}; ///< by process
  std::array<char, 200> refusal{};          ///< empty: welcome
};

constexpr std::size_t max_files = max_ranks + 1;

std::string reason(int number) {
  return std::system_category().message(number);
}

[[noreturn]] void refuse(const std::string& what) {
  throw error(errc::invalid_argument, "shared memory group: " + what);
}

[[noreturn]] void fail(errc code, const std::string& what) {
  throw error(code, "shared memory group: " + what);
}

/// Sends a message with files. False if the peer is gone.
template <class Message>
bool send(int to, const Message& message, std::span<const int> files) {
  static_assert(std::is_trivially_copyable_v<Message>);
  iovec bytes{const_cast<Message*>(&message), sizeof message};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(max_files * sizeof(int))>
    space{};
  msghdr packet{};
  packet.msg_iov = &bytes;
  packet.msg_iovlen = 1;
  if (!files.empty()) {
    packet.msg_control = space.data();
    packet.msg_controllen = CMSG_SPACE(files.size_bytes());
    auto* head = CMSG_FIRSTHDR(&packet);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(files.size_bytes());
    std::memcpy(CMSG_DATA(head), files.data(), files.size_bytes());
  }
  return ::sendmsg(to, &packet, MSG_NOSIGNAL)
         == static_cast<ssize_t>(sizeof message);
}

/// How long to wait.
struct limit {
  clock::time_point deadline;
  const std::function<void()>& check; ///< as in `shm_group_options`

  bool is_over() const {
    if (check)
      check();
    return clock::now() >= deadline;
  }
  limit until(clock::time_point sooner) const {
    return {std::min(deadline, sooner), check};
  }
};

bool can_read(int fd, const limit& wait) {
  constexpr auto between_checks = 20ms;
  while (!wait.is_over()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      wait.deadline - clock::now());
    pollfd one{fd, POLLIN, 0};
    const auto n =
      ::poll(&one, 1, static_cast<int>(std::min(left, between_checks).count()));
    if (n > 0)
      return true;
    if (n < 0 && errno != EINTR)
      return false;
  }
  return false;
}

/// Receives a message and its files. Nothing if there is none before the
/// limit, or another one.
template <class Message>
std::optional<Message> receive(int from, std::vector<descriptor>& files,
                               const limit& wait) {
  static_assert(std::is_trivially_copyable_v<Message>);
  if (!can_read(from, wait))
    return std::nullopt;
  Message message;
  iovec bytes{&message, sizeof message};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(max_files * sizeof(int))> space;
  msghdr packet{};
  packet.msg_iov = &bytes;
  packet.msg_iovlen = 1;
  packet.msg_control = space.data();
  packet.msg_controllen = space.size();
  const auto n = ::recvmsg(from, &packet, MSG_CMSG_CLOEXEC);
  if (n < 0)
    return std::nullopt;
  for (auto* head = CMSG_FIRSTHDR(&packet); head;
       head = CMSG_NXTHDR(&packet, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
      continue;
    for (std::size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= head->cmsg_len;
         ++i) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(head) + i * sizeof file, sizeof file);
      files.emplace_back(file);
    }
  }
  if (n != static_cast<ssize_t>(sizeof message) || message.begin != magic
      || (packet.msg_flags & MSG_CTRUNC) != 0)
    return std::nullopt;
  return message;
}

// -- sockets ------------------------------------------------------------------

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    refuse("the path of the socket must have 1 to "
           + std::to_string(sizeof address.sun_path - 1)
           + " characters: " + path);
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

descriptor make_socket() {
  descriptor made{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  if (!made)
    fail(errc::io_failure, "no socket: " + reason(errno));
  return made;
}

/// A socket that listens at a path, which is removed with it.
class listener {
public:
  explicit listener(const std::string& path)
    : path_(path), socket_(make_socket()) {
    const auto at = address_of(path);
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at)
        != 0)
      fail(errc::io_failure, path + ": " + reason(errno));
    if (::listen(socket_.get(), static_cast<int>(max_ranks)) != 0) {
      const auto why = reason(errno);
      ::unlink(path_.c_str());
      fail(errc::io_failure, path + ": " + why);
    }
  }
  ~listener() { ::unlink(path_.c_str()); }
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;

  /// The next process of this user that connects; nothing after the limit.
  descriptor accept(const limit& wait) {
    while (can_read(socket_.get(), wait)) {
      descriptor peer{::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
      ucred who{};
      socklen_t size = sizeof who;
      if (peer
          && ::getsockopt(peer.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) == 0
          && who.uid == ::geteuid())
        return peer;
    }
    return descriptor{};
  }

private:
  std::string path_;
  descriptor socket_;
};

descriptor connect(const std::string& path, const limit& wait) {
  const auto at = address_of(path);
  for (;;) {
    auto peer = make_socket();
    if (::connect(peer.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at)
        == 0)
      return peer;
    const auto why = errno;
    if (why != ENOENT && why != ECONNREFUSED && why != EINTR && why != EAGAIN)
      fail(errc::io_failure, path + ": " + reason(why));
    if (wait.is_over())
      fail(errc::peer_failure, "process 0 does not listen at " + path);
    std::this_thread::sleep_for(pause);
  }
}

// -- joining ------------------------------------------------------------------

shared_segment make_common(const common_memory& common, std::size_t processes) {
  constexpr std::size_t page = 4096;
  auto shared = shared_segment::make((common.bytes + page - 1) / page * page);
  if (!shared.commit(0, common.bytes))
    fail(errc::out_of_memory, "no shared memory");
  common.prepare(shared.data(), processes);
  return shared;
}

std::shared_ptr<shared_segment> share(shared_segment segment) {
  return std::make_shared<shared_segment>(std::move(segment));
}

rank_mask mask_of(const shm_group_options& options) {
  rank_mask mask = 0;
  for (auto rank : options.ranks)
    mask |= bit_of(rank);
  return options.ranks.empty() ? bit_of(options.process) : mask;
}

/// What is wrong with a process that wants to join; empty: nothing.
std::string objection(const hello& other, const hello& own,
                      const std::vector<std::optional<member>>& members) {
  const auto name = "process " + std::to_string(other.process);
  if (other.processes != own.processes)
    return name + " is one of " + std::to_string(other.processes)
           + " processes, process 0 one of " + std::to_string(own.processes);
  if (other.common_bytes != own.common_bytes)
    return name + " is another version of the program";
  if (other.process >= members.size() || members[other.process])
    return name + " is there already";
  if (other.ranks == 0 || other.ranks >= bit_of(max_ranks))
    return name + " has impossible ranks";
  for (auto& m : members)
    if (m && (m->ranks & other.ranks) != 0)
      return name + " has ranks of another process";
  return {};
}

std::string
missing_processes(const std::vector<std::optional<member>>& members) {
  std::string missing;
  for (std::size_t p = 0; p < members.size(); ++p)
    if (!members[p])
      missing += (missing.empty() ? "" : ", ") + std::to_string(p);
  return missing;
}

/// Process 0: lets the others join and sends everybody the segments of all.
class host {
public:
  host(const hello& said, const process_memory& own,
       const common_memory& common)
    : said_(said), common_(make_common(common, said.processes)),
      members_(said.processes), peers_(said.processes) {
    members_[0] = member{own.share_segment(), said.ranks};
  }

  meeting run(const std::string& path, const limit& wait) {
    listener door{path};
    while (!missing_processes(members_).empty()) {
      auto peer = door.accept(wait);
      if (!peer)
        fail(errc::peer_failure, "processes that did not join in time: "
                                   + missing_processes(members_));
      admit(std::move(peer), wait.until(clock::now() + patience));
    }
    welcome();
    meeting all{std::move(common_), {}};
    for (auto& m : members_)
      all.members.push_back(std::move(*m));
    return all;
  }

private:
  void admit(descriptor peer, const limit& wait) {
    std::vector<descriptor> files;
    const auto said = receive<hello>(peer.get(), files, wait);
    if (!said || files.size() != 1)
      return; // a stranger
    if (const auto why = objection(*said, said_, members_); !why.empty()) {
      answer no;
      std::copy_n(why.begin(), std::min(why.size(), no.refusal.size() - 1),
                  no.refusal.begin());
      send(peer.get(), no, {});
      return;
    }
    members_[said->process] = member{
      share(shared_segment::adopt(std::move(files.front()))), said->ranks};
    peers_[said->process] = std::move(peer);
  }

  void welcome() {
    answer yes;
    std::vector<int> files{common_.file()};
    for (std::size_t p = 0; p < members_.size(); ++p) {
      yes.ranks[p] = members_[p]->ranks;
      files.push_back(members_[p]->segment->file());
    }
    for (std::size_t p = 1; p < peers_.size(); ++p)
      if (!send(peers_[p].get(), yes, files))
        fail(errc::peer_failure, "process " + std::to_string(p) + " is gone");
  }

  hello said_;
  shared_segment common_;
  std::vector<std::optional<member>> members_; // by process
  std::vector<descriptor> peers_;
};

/// The other processes.
meeting join(const std::string& path, const hello& said,
             const process_memory& own, const limit& wait) {
  const auto peer = connect(path, wait);
  std::vector<descriptor> files;
  const int segment = own.segment().file();
  const auto got = send(peer.get(), said, {&segment, 1})
                     ? receive<answer>(peer.get(), files, wait)
                     : std::nullopt;
  if (!got)
    fail(errc::peer_failure, "process 0 does not answer");
  if (got->refusal.front() != 0)
    refuse(std::string{got->refusal.data(),
                       ::strnlen(got->refusal.data(), got->refusal.size())});
  if (files.size() != said.processes + 1)
    fail(errc::peer_failure, "process 0 answers wrongly");
  meeting all{shared_segment::adopt(std::move(files[0])), {}};
  for (std::size_t p = 0; p < said.processes; ++p)
    all.members.push_back({p == said.process ? own.share_segment()
                                             : share(shared_segment::adopt(
                                               std::move(files[p + 1]))),
                           got->ranks[p]});
  return all;
}

void check(const shm_group_options& options) {
  if (options.processes == 0 || options.processes > max_ranks
      || options.process >= options.processes)
    refuse("process " + std::to_string(options.process) + " of "
           + std::to_string(options.processes) + ", at most "
           + std::to_string(max_ranks));
  for (auto rank : options.ranks)
    if (rank >= max_ranks)
      refuse("rank " + std::to_string(rank) + ", at most "
             + std::to_string(max_ranks) + " are possible");
}

} // namespace

meeting meet(const shm_group_options& options, const process_memory& own,
             const common_memory& common) {
  check(options);
  hello said;
  said.common_bytes = common.bytes;
  said.process = static_cast<std::uint32_t>(options.process);
  said.processes = static_cast<std::uint32_t>(options.processes);
  said.ranks = mask_of(options);
  const limit wait{clock::now() + options.timeout, options.check};
  return options.process == 0 ? host{said, own, common}.run(options.path, wait)
                              : join(options.path, said, own, wait);
}

} // namespace troupe::comm::shm

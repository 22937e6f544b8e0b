// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/shm/join.hpp>

#include <troupe/base/descriptor.hpp>
#include <troupe/base/error.hpp>
#include <troupe/comm/end_of_group.hpp>
#include <troupe/comm/shm/board.hpp>
#include <troupe/comm/shm/parcel_ring.hpp>
#include <troupe/comm/shm/shared_segment.hpp>
#include <troupe/comm/shm/shm_group.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

namespace troupe::comm {

namespace shm {

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
  /// Equal programs have equal boards and rings.
  std::uint64_t board_bytes = sizeof(board) + sizeof(parcel_ring);
  std::uint32_t process = 0;
  std::uint32_t processes = 0;
  rank_mask ranks = 0;
};

/// The answer, with the board and the segments of all processes; or a refusal,
/// without files.
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

std::size_t bytes_of_board(std::size_t processes) {
  return sizeof(board) + bytes_of_rings(processes);
}

shared_segment make_board(std::size_t processes) {
  constexpr std::size_t page = 4096;
  const auto bytes = bytes_of_board(processes);
  auto shared = shared_segment::make((bytes + page - 1) / page * page);
  if (!shared.commit(0, bytes))
    fail(errc::out_of_memory, "no shared memory");
  new (shared.data()) board;
  auto* rings = shared.data() + sizeof(board);
  for (std::size_t i = 0; i < processes * processes; ++i)
    new (rings + i * sizeof(parcel_ring)) parcel_ring;
  return shared;
}

/// What a process has when it has joined.
struct joined {
  shared_segment board;
  std::vector<member> members;
};

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
std::string objection(const hello& other, const shm_group_options& own,
                      const std::vector<std::optional<member>>& members) {
  const auto name = "process " + std::to_string(other.process);
  if (other.board_bytes != hello{}.board_bytes)
    return name + " is another version of the program";
  if (other.processes != own.processes)
    return name + " is one of " + std::to_string(other.processes)
           + " processes, process 0 one of " + std::to_string(own.processes);
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
  host(const shm_group_options& options, const process_memory& own)
    : options_(options), board_(make_board(options.processes)),
      members_(options.processes), peers_(options.processes) {
    members_[0] = member{own.share_segment(), mask_of(options)};
  }

  joined run(const limit& wait) {
    listener door{options_.path};
    while (!missing_processes(members_).empty()) {
      auto peer = door.accept(wait);
      if (!peer)
        fail(errc::peer_failure, "processes that did not join in time: "
                                   + missing_processes(members_));
      admit(std::move(peer), wait.until(clock::now() + patience));
    }
    welcome();
    joined all{std::move(board_), {}};
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
    if (const auto why = objection(*said, options_, members_); !why.empty()) {
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
    std::vector<int> files{board_.file()};
    for (std::size_t p = 0; p < members_.size(); ++p) {
      yes.ranks[p] = members_[p]->ranks;
      files.push_back(members_[p]->segment->file());
    }
    for (std::size_t p = 1; p < peers_.size(); ++p)
      if (!send(peers_[p].get(), yes, files))
        fail(errc::peer_failure, "process " + std::to_string(p) + " is gone");
  }

  const shm_group_options& options_;
  shared_segment board_;
  std::vector<std::optional<member>> members_; // by process
  std::vector<descriptor> peers_;
};

/// The other processes.
joined join(const shm_group_options& options, const process_memory& own,
            const limit& wait) {
  const auto peer = connect(options.path, wait);
  hello said;
  said.process = static_cast<std::uint32_t>(options.process);
  said.processes = static_cast<std::uint32_t>(options.processes);
  said.ranks = mask_of(options);
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
  if (files.size() != options.processes + 1)
    fail(errc::peer_failure, "process 0 answers wrongly");
  joined all{shared_segment::adopt(std::move(files[0])), {}};
  for (std::size_t p = 0; p < options.processes; ++p)
    all.members.push_back({p == options.process ? own.share_segment()
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

/// Throws if a rank is missing.
void check_ranks(const std::vector<member>& members) {
  rank_mask all = 0;
  for (auto& m : members)
    all |= m.ranks;
  if (all >= bit_of(max_ranks))
    refuse("there are too many ranks");
  if ((all & (all + 1)) != 0)
    refuse("no process has rank " + std::to_string(std::countr_one(all)));
}

// -- ends ---------------------------------------------------------------------

class shm_communicator final : public end_of_group<shm_group> {
public:
  using end_of_group::end_of_group;
  ~shm_communicator() override {
    leave({errc::peer_failure, "its communicator is gone"});
    group().wait_for_end(rank());
  }

  arena* memory() noexcept override { return &group().memory(); }
  bool progress() override { return group().progress(); }
  void begin_looking() override { group().begin_looking(); }
  void end_looking() override { group().end_looking(); }
  void beat(std::uint64_t steps, std::string_view doing) override {
    group().beat(steps, doing);
  }
  std::vector<peer_state> peers() const override { return group().peers(); }
  void open_parcels(parcel_receiver& to) override {
    group().parcels().open(to);
  }
  void close_parcels() noexcept override { group().parcels().close(); }
  void send_parcel(std::size_t to, parcel p) override {
    group().parcels().send(rank(), to, std::move(p));
  }
};

} // namespace

} // namespace shm

std::vector<std::unique_ptr<communicator>>
join_shm_group(const shm_group_options& options,
               std::shared_ptr<process_memory> own) {
  shm::check(options);
  const shm::limit wait{shm::clock::now() + options.timeout, options.check};
  auto all = options.process == 0 ? shm::host{options, *own}.run(wait)
                                  : shm::join(options, *own, wait);
  shm::check_ranks(all.members);
  const auto group = std::make_shared<shm::shm_group>(
    std::move(all.board), std::move(all.members), options.process,
    std::move(own));
  std::vector<std::unique_ptr<communicator>> ends;
  for (auto rank : group->own_ranks())
    ends.push_back(std::make_unique<shm::shm_communicator>(group, rank));
  return ends;
}

std::vector<std::unique_ptr<communicator>>
join_shm_group(const shm_group_options& options) {
  return join_shm_group(options, std::make_shared<process_memory>());
}

} // namespace troupe::comm

// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/meeting_store.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include <sys/socket.h>

namespace troupe::apps {

namespace {

constexpr std::chrono::milliseconds between_looks{20};

// -- records ------------------------------------------------------------------

// Two lengths, least significant byte first, then key and value.
constexpr std::size_t length_bytes = 4, header_bytes = 2 * length_bytes;
// Of an address book; limits what a rank keeps for another.
constexpr std::size_t longest_part = std::size_t{1} << 20;

std::string length_as_bytes(std::size_t length) {
  std::string bytes;
  for (std::size_t i = 0; i < length_bytes; ++i, length >>= 8)
    bytes += static_cast<char>(length & 0xff);
  return bytes;
}

std::size_t length_at(const std::string& bytes, std::size_t at) {
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(bytes[at + i]);
  return length;
}

std::string record_of(const std::string& key, std::string_view value) {
  return length_as_bytes(key.size()) + length_as_bytes(value.size()) + key
         + std::string(value);
}

[[noreturn]] void throw_gone() {
  throw error(errc::peer_failure,
              "a rank is gone while the ranks of the job meet");
}

// -- connections --------------------------------------------------------------

actors::way_in way_to_first(const rank_part& part) {
  const auto& meeting = part.meeting_on_network();
  actors::way_in way;
  way.host = meeting.address;
  way.port = meeting.port;
  way.interface = meeting.interface;
  way.credentials = std::make_shared<comm::job_credentials>(
    comm::read_credentials(meeting.credentials, part.rank()));
  return way;
}

/// Those that the gate's thread has admitted.
struct admitted_ranks {
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::uint64_t> numbers;
  std::vector<actors::passage> passages;
};

} // namespace

meeting_store::meeting_store(const rank_part& part,
                             std::chrono::steady_clock::time_point deadline) {
  if (part.is_first()) {
    let_in(part, deadline);
    return;
  }
  auto come = actors::knock(way_to_first(part), part.rank(), deadline,
                            [&part] { part.require_epoch(); });
  own_address_ = come.own_address;
  peers_.push_back({std::move(come.through)});
}

/// The gate is closed before anything is exchanged: the next who listens there
/// is the run itself.
void meeting_store::let_in(const rank_part& part,
                           std::chrono::steady_clock::time_point deadline) {
  admitted_ranks admitted;
  {
    const actors::gate gate{
      way_to_first(part),
      {.admit = [&](actors::passage come, std::uint64_t rank, std::uint16_t) {
        const std::lock_guard guard{admitted.mutex};
        if (!admitted.numbers.insert(rank).second)
          return; // its number is taken
        admitted.passages.push_back(std::move(come));
        admitted.changed.notify_one();
      }}};
    own_address_ = gate.address();
    std::unique_lock guard{admitted.mutex};
    while (admitted.passages.size() + 1 < part.size()) {
      admitted.changed.wait_for(guard, between_looks);
      part.require_epoch();
      if (std::chrono::steady_clock::now() > deadline)
        throw error(errc::peer_failure,
                    std::to_string(admitted.passages.size() + 1) + " of "
                      + std::to_string(part.size())
                      + " ranks have come to go on");
    }
  }
  for (auto& passage : admitted.passages)
    peers_.push_back({std::move(passage)});
}

void meeting_store::publish(const std::string& key,
                            std::span<const char> value) {
  take_record(key, {value.begin(), value.end()});
  for (auto& to : peers_)
    send(to, record_of(key, {value.data(), value.size()}));
}

std::optional<std::vector<char>> meeting_store::find(const std::string& key) {
  for (auto& from : peers_)
    take(from);
  const auto found = found_.find(key);
  if (found != found_.end())
    return std::vector<char>{found->second.begin(), found->second.end()};
  if (std::ranges::any_of(peers_, &peer::is_gone))
    throw_gone();
  return std::nullopt;
}

/// Takes what has arrived. Passes records on to all others: only rank 0 has
/// several peers.
void meeting_store::take(peer& from) {
  std::array<char, 4096> bytes;
  ssize_t got = 0;
  while (!from.is_gone
         && (got = ::recv(from.through.socket.get(), bytes.data(), bytes.size(),
                          MSG_DONTWAIT))
              > 0)
    from.arrived.append(bytes.data(), static_cast<std::size_t>(got));
  from.is_gone =
    got == 0
    || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  auto& text = from.arrived;
  while (text.size() >= header_bytes) {
    const auto key = length_at(text, 0), value = length_at(text, length_bytes);
    if (key > longest_part || value > longest_part)
      throw error(errc::peer_failure, "a rank sends what is no address");
    const auto size = header_bytes + key + value;
    if (text.size() < size)
      return;
    const auto record = text.substr(0, size);
    text.erase(0, size);
    take_record(record.substr(header_bytes, key),
                record.substr(header_bytes + key));
    for (auto& to : peers_)
      if (&to != &from)
        send(to, record);
  }
}

void meeting_store::take_record(const std::string& key,
                                const std::string& value) {
  if (!found_.emplace(key, value).second)
    throw error(errc::io_failure, "two ranks publish " + key);
}

/// Records are small: a rank that does not take them is gone.
void meeting_store::send(peer& to, const std::string& record) {
  std::size_t sent = 0;
  while (sent < record.size()) {
    const auto n = ::send(to.through.socket.get(), record.data() + sent,
                          record.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR)
      throw_gone();
    sent += n > 0 ? static_cast<std::size_t>(n) : 0;
  }
}

} // namespace troupe::apps

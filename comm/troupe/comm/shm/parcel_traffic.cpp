// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/shm/parcel_traffic.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/comm/kept_memory.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>
#include <utility>

namespace troupe::comm::shm {

namespace {

/// How long a process that ends waits until others make room for its parcels.
constexpr std::uint64_t patience_at_end_ns = 500'000'000;

} // namespace

parcel_traffic::parcel_traffic(std::span<process_line> lines,
                               parcel_ring* rings,
                               const std::vector<member>& members,
                               std::size_t self, arena& memory, parcel_gate& to)
  : lines_(lines), rings_(rings), members_(members), self_(self),
    memory_(memory), gate_(to), ways_(members.size()) {
  for (std::size_t p = 0; p < members_.size(); ++p)
    ways_[p].ring = &ring(self_, p);
}

parcel_traffic::~parcel_traffic() {
  const auto end = now_ns() + patience_at_end_ns;
  for (send_waiting();
       full_ways_.load(std::memory_order_relaxed) != 0 && now_ns() < end;
       send_waiting())
    std::this_thread::yield();
  for (auto& way : ways_) {
    if (!way.in_ring.empty()) // others can still read it
      keep_for_ever(std::move(way.in_ring));
  }
}

parcel_ring& parcel_traffic::ring(std::size_t from, std::size_t to) noexcept {
  return rings_[from * members_.size() + to];
}

std::size_t parcel_traffic::process_of(std::size_t rank) const noexcept {
  std::size_t process = 0;
  while ((members_[process].ranks & bit_of(rank)) == 0)
    ++process;
  return process;
}

// -- sending ------------------------------------------------------------------

void parcel_traffic::send(std::size_t from, std::size_t to, parcel p) {
  const auto process = process_of(to);
  const auto& segment = *members_[self_].segment;
  if (p.bytes > 0 && !segment.contains(p.content.data(), p.bytes)) {
    auto copy = memory_.allocate(p.bytes);
    std::memcpy(copy.data(), p.content.data(), p.bytes);
    p.content = std::move(copy);
  }
  auto& way = ways_[process];
  {
    std::lock_guard guard{way.mutex};
    way.waiting.emplace_back(static_cast<std::uint32_t>(from), std::move(p));
    fill(way);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  shm::ring(lines_[process]);
}

/// How many entries the other process has read. What it says is not believed
/// beyond what is possible.
std::uint64_t parcel_traffic::entries_read(const way_out& way,
                                           std::memory_order order) noexcept {
  return std::clamp(way.ring->read.load(order), way.first, way.written);
}

/// Moves parcels into the ring while it has room. True if there were any. Needs
/// the lock.
bool parcel_traffic::fill(way_out& way) {
  const auto& segment = *members_[self_].segment;
  auto& ring = *way.ring;
  auto& next = way.written;
  const auto before = next;
  auto read = entries_read(way, std::memory_order_acquire);
  while (!way.waiting.empty()) {
    if (next - read == parcel_ring::capacity) {
      ring.wants_room.store(true, std::memory_order_seq_cst);
      read = entries_read(way, std::memory_order_seq_cst);
      if (next - read == parcel_ring::capacity)
        break;
    }
    auto& [from, p] = way.waiting.front();
    ring.entry(next) = {p.label,
                        p.bytes > 0 ? segment.offset_of(p.content.data()) : 0,
                        p.bytes, from};
    way.in_ring.push_back(std::move(p.content));
    way.waiting.pop_front();
    ring.written.store(++next, std::memory_order_release);
  }
  for (; way.first < read; ++way.first)
    way.in_ring.pop_front();
  if (way.is_counted == way.waiting.empty()) {
    way.is_counted = !way.is_counted;
    full_ways_.fetch_add(way.is_counted ? 1u : ~0u, std::memory_order_relaxed);
  }
  return next != before;
}

bool parcel_traffic::send_waiting() {
  bool any = false;
  for (std::size_t p = 0; p < ways_.size(); ++p) {
    bool filled = false;
    {
      std::lock_guard guard{ways_[p].mutex};
      filled = fill(ways_[p]);
    }
    if (filled) {
      std::atomic_thread_fence(std::memory_order_seq_cst);
      shm::ring(lines_[p]);
    }
    any |= filled;
  }
  return any;
}

// -- receiving ----------------------------------------------------------------

bool parcel_traffic::has_news() const noexcept {
  if (full_ways_.load(std::memory_order_relaxed) != 0)
    return true;
  for (std::size_t p = 0; p < members_.size(); ++p) {
    const auto& ring = rings_[p * members_.size() + self_];
    if (ring.written.load(std::memory_order_acquire)
        != ring.read.load(std::memory_order_relaxed))
      return true;
  }
  return false;
}

bool parcel_traffic::advance() {
  if (requests_.fetch_add(1, std::memory_order_acq_rel) != 0)
    return false;
  bool any = false;
  for (std::uint32_t seen = 1;;) {
    for (std::size_t p = 0; p < members_.size(); ++p)
      any |= take_all(p);
    any |= send_waiting();
    if (requests_.compare_exchange_strong(seen, 0, std::memory_order_acq_rel))
      return any;
  }
}

bool parcel_traffic::take_all(std::size_t from) {
  auto& ring = this->ring(from, self_);
  auto next = ring.read.load(std::memory_order_relaxed);
  const auto before = next;
  for (std::uint64_t written = 0;
       next != (written = ring.written.load(std::memory_order_acquire));) {
    if (written - next > parcel_ring::capacity) {
      refuse(from);
      next = written;
    } else {
      deliver(from, ring.entry(next));
      ++next;
    }
    ring.read.store(next, std::memory_order_seq_cst);
  }
  if (next != before
      && ring.wants_room.exchange(false, std::memory_order_seq_cst)) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    shm::ring(lines_[from]);
  }
  return next != before;
}

void parcel_traffic::refuse(std::size_t from) {
  gate_.refuse(static_cast<std::size_t>(std::countr_zero(members_[from].ranks)),
               {errc::peer_failure, "it sent a malformed parcel"});
}

/// Trusts nothing that the other process has written: it may be broken.
void parcel_traffic::deliver(std::size_t from, const parcel_entry& entry) {
  const auto sent = entry; // the other process cannot change this any more
  const auto& segment = *members_[from].segment;
  const bool is_its_rank =
    sent.from < max_ranks && (members_[from].ranks & bit_of(sent.from)) != 0;
  if (!is_its_rank || sent.offset > segment.size()
      || sent.bytes > segment.size() - sent.offset)
    return refuse(from);
  gate_.deliver(sent.from, sent.label,
                segment.bytes().subspan(sent.offset, sent.bytes));
}

} // namespace troupe::comm::shm

// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/event_ring.hpp>

#include <algorithm>
#include <new>

#include <sys/mman.h>

namespace troupe {

void event_ring::unmap::operator()(std::uint64_t* words) const noexcept {
  ::munmap(words, bytes);
}

// A large calloc would do as well, but only until malloc has freed a block as
// large: from then on it clears such blocks itself, and so touches all pages.
event_ring::mapped_words event_ring::map(std::size_t events) {
  const auto bytes = events * sizeof(trace_event);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw std::bad_alloc{};
#if defined(MADV_NOHUGEPAGE)
  // A huge page would take 2 MiB for the first event. If the system has none,
  // the call fails and nothing is lost.
  ::madvise(memory, bytes, MADV_NOHUGEPAGE);
#endif
  return mapped_words{static_cast<std::uint64_t*>(memory), unmap{bytes}};
}

event_ring::event_ring(std::size_t capacity)
  : mask_(capacity - 1), words_(map(capacity)) {}

trace_event event_ring::unpacked(const event_words& words) noexcept {
  trace_event e;
  e.time = words[0];
  e.amount = words[1];
  e.from = static_cast<handle_id>(words[2]);
  e.to = static_cast<handle_id>(words[2] >> 32);
  e.step = static_cast<std::uint32_t>(words[3]);
  e.worker = static_cast<std::uint16_t>(words[3] >> 32);
  e.kind = static_cast<event_kind>(words[3] >> 48);
  return e;
}

std::uint64_t event_ring::read(std::uint64_t& next,
                               std::vector<trace_event>& into) const {
  const auto capacity = mask_ + 1;
  const auto head = written();
  const auto oldest = head > capacity ? head - capacity : 0;
  const auto first = std::max(next, oldest);
  const auto begin = into.size();
  into.reserve(begin + (head - first));
  for (auto i = first; i < head; ++i) {
    event_words words{};
    for (std::size_t w = 0; w < words.size(); ++w)
      words[w] =
        std::atomic_ref{place_of(i)[w]}.load(std::memory_order_acquire);
    into.push_back(unpacked(words));
  }
  // The event that is being written replaces the one `capacity` before it.
  const auto now = written();
  const auto valid = now >= capacity ? now - capacity + 1 : 0;
  const auto overwritten = std::min(std::max(first, valid), head) - first;
  into.erase(into.begin() + static_cast<std::ptrdiff_t>(begin),
             into.begin() + static_cast<std::ptrdiff_t>(begin + overwritten));
  const auto lost = first - next + overwritten;
  next = head;
  return lost;
}

} // namespace troupe

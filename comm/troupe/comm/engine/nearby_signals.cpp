// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/engine/nearby_signals.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/spin.hpp>

namespace troupe::comm {

namespace {

/// How long a thread looks before it sleeps: about as long as it takes to wake
/// it.
constexpr std::uint64_t patience_of_look_ns = 20'000;

} // namespace

nearby_signals::nearby_signals(neighbours& with)
  : with_(with), awaited_(with.count()) {}

void nearby_signals::tell(kind what) noexcept {
  auto& count =
    with_.told()[with_.self()].counts[static_cast<std::size_t>(what)];
  // This thread alone writes it.
  count.store(count.load(std::memory_order_relaxed) + 1,
              std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::size_t n = 0; n < with_.count(); ++n)
    if (n != with_.self())
      shm::ring(with_.waiting()[n]);
}

void nearby_signals::tell_places(std::uint64_t place) noexcept {
  with_.told()[with_.self()].places.store(place, std::memory_order_relaxed);
  tell(kind::places);
}

std::uint64_t nearby_signals::places_of(std::size_t of) const noexcept {
  return with_.told()[of].places.load(std::memory_order_relaxed);
}

bool nearby_signals::has_told(std::size_t of, kind what,
                              std::uint64_t number) const noexcept {
  return with_.told()[of].counts[static_cast<std::size_t>(what)].load(
           std::memory_order_acquire)
         >= number;
}

/// Looks for a while, during which nobody rings. True if it has come.
bool nearby_signals::look_for(std::size_t of, kind what,
                              std::uint64_t number) noexcept {
  auto& looking = with_.waiting()[with_.self()].looking;
  looking.fetch_add(1, std::memory_order_seq_cst);
  bool has_come = has_told(of, what, number);
  for (const auto start = now_ns();
       !has_come && now_ns() - start < patience_of_look_ns;
       has_come = has_told(of, what, number))
    relax();
  looking.fetch_sub(1, std::memory_order_seq_cst);
  return has_come;
}

void nearby_signals::wait(std::size_t of, kind what, std::uint64_t number) {
  if (has_told(of, what, number) || look_for(of, what, number))
    return;
  auto& own = with_.waiting()[with_.self()];
  for (;;) {
    const auto heard = own.bell.load(std::memory_order_seq_cst);
    if (has_told(of, what, number))
      return;
    if (is_stopped_.load(std::memory_order_seq_cst))
      throw error(errc::peer_failure, "the group has stopped");
    shm::sleep(own, heard);
  }
}

void nearby_signals::stop() noexcept {
  is_stopped_.store(true, std::memory_order_seq_cst);
  shm::ring(with_.waiting()[with_.self()]);
}

} // namespace troupe::comm

// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/shm/process_line.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace troupe::comm::shm {

namespace {

constexpr std::uint32_t is_asleep = 1;

/// Not a private futex: the word is in other processes, too.
long futex(std::atomic<std::uint32_t>& word, int operation,
           std::uint32_t value) noexcept {
  return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word),
                   operation, value, nullptr, nullptr, 0);
}

} // namespace

void ring(process_line& process) noexcept {
  if (process.looking.load(std::memory_order_seq_cst) != 0)
    return;
  auto before = process.bell.load(std::memory_order_relaxed);
  while (!process.bell.compare_exchange_weak(before, (before | is_asleep) + 1,
                                             std::memory_order_seq_cst)) {
  }
  if ((before & is_asleep) != 0)
    futex(process.bell, FUTEX_WAKE, INT_MAX);
}

void sleep(process_line& own, std::uint32_t heard) noexcept {
  auto expected = heard;
  const auto asleep = heard | is_asleep;
  if (own.bell.compare_exchange_strong(expected, asleep,
                                       std::memory_order_seq_cst))
    futex(own.bell, FUTEX_WAIT, asleep);
}

} // namespace troupe::comm::shm

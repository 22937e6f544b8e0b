// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/shm/process_line.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace troupe::comm::shm {

namespace {

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
  process.bell.fetch_add(1, std::memory_order_seq_cst);
  if (process.asleep.exchange(0, std::memory_order_seq_cst) != 0)
    futex(process.bell, FUTEX_WAKE, INT_MAX);
}

void sleep(process_line& own, std::uint32_t heard) noexcept {
  own.asleep.store(1, std::memory_order_seq_cst);
  if (own.bell.load(std::memory_order_seq_cst) == heard)
    futex(own.bell, FUTEX_WAIT, heard);
  own.asleep.store(0, std::memory_order_relaxed);
}

} // namespace troupe::comm::shm

// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/shm/bell_thread.hpp>

#include <troupe/base/threads.hpp>

#include <cstdint>
#include <utility>

namespace troupe::comm::shm {

bell_thread::bell_thread(const char* name, process_line& line,
                         std::function<void()> work)
  : line_(line), work_(std::move(work)),
    thread_(start_thread(name, [this] { run(); })) {}

bell_thread::~bell_thread() {
  ends_.store(true, std::memory_order_release);
  line_.looking.store(0, std::memory_order_seq_cst);
  ring(line_);
  thread_.join();
}

/// Reads the bell first, and then everything that it may have rung for, `ends_`
/// too. In another order, a notice in between would be taken for one that was
/// acted upon, and the thread would sleep through it.
void bell_thread::run() {
  for (std::uint32_t heard = 0;;) { // no bell has rung on a new line
    sleep(line_, heard);
    heard = line_.bell.load(std::memory_order_acquire);
    if (ends_.load(std::memory_order_acquire))
      return;
    work_();
  }
}

} // namespace troupe::comm::shm

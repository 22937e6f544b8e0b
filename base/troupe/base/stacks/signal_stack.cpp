// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/stacks/signal_stack.hpp>

#include <algorithm>
#include <csignal>
#include <cstddef>

#include <sys/mman.h>
#include <unistd.h>

namespace troupe {

namespace {

/// What the handler of `thread_stacks` needs, beside the registers, which take
/// several KiB with AVX-512 or AMX.
constexpr std::size_t of_handler = std::size_t{48} * 1024;

/// A thread's stack for signal handlers.
class signal_stack {
public:
  signal_stack() noexcept {
    stack_t now = {};
    has_one_ =
      ::sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE) == 0;
    if (!has_one_)
      map();
  }

  ~signal_stack() {
    if (memory_ == MAP_FAILED)
      return;
    // Somebody can have replaced it.
    stack_t now = {};
    if (::sigaltstack(nullptr, &now) == 0 && now.ss_sp == memory_) {
      stack_t none = {};
      none.ss_flags = SS_DISABLE;
      ::sigaltstack(&none, nullptr);
    }
    ::munmap(memory_, bytes_);
  }

  signal_stack(const signal_stack&) = delete;
  signal_stack& operator=(const signal_stack&) = delete;

  bool is_there() const noexcept { return has_one_; }

private:
  void map() noexcept {
    const auto least = ::sysconf(_SC_MINSIGSTKSZ);
    bytes_ = of_handler + static_cast<std::size_t>(std::max(least, 0L));
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED)
      return;
    stack_t made = {};
    made.ss_sp = memory_;
    made.ss_size = bytes_;
    has_one_ = ::sigaltstack(&made, nullptr) == 0;
  }

  void* memory_ = MAP_FAILED;
  std::size_t bytes_ = 0;
  bool has_one_ = false;
};

} // namespace

bool have_signal_stack() noexcept {
  thread_local const signal_stack here;
  return here.is_there();
}

} // namespace troupe

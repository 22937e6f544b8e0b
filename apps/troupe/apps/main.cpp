// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/command.hpp>
#include <troupe/apps/commit.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/threads.hpp>
#include <troupe/kernels/memory/address_space.hpp>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace {

/// True if addresses (`ulimit -v`) or data (`ulimit -d`) are limited.
bool has_few_addresses() noexcept {
  return troupe::address_limit() != SIZE_MAX;
}

// A sanitizer's code cannot run before the sanitizer is initialized.
#if !defined(TROUPE_SANITIZED)
/// When OpenBLAS is loaded, it starts one thread less than there are cores.
/// Each takes 128 MiB of addresses, or waits for them for ever. If a thread
/// cannot be started, OpenBLAS interrupts the process. Troupe does not use
/// these threads: if addresses or threads are limited, the command restarts
/// itself without them. With few addresses it does so even if the environment
/// asks for some.
///
/// Runs before the libraries are initialized, so it must not use them.
void do_without_blas_threads(int, char** argv, char** environment) noexcept {
  constexpr std::string_view variable = "OPENBLAS_NUM_THREADS=";
  char without[] = "OPENBLAS_NUM_THREADS=1";
  const auto sets = [&](std::string_view entry) {
    return entry.starts_with(variable);
  };
  std::size_t count = 0;
  const char* set = nullptr;
  for (; environment[count]; ++count)
    if (!set && sets(environment[count])) // getenv finds the first
      set = environment[count];
  if (set ? !has_few_addresses() || std::string_view{set} == without
          : !has_few_addresses()
              && troupe::try_threads(troupe::usable_cores() - 1) == 0)
    return;
  using entries = std::unique_ptr<char*[]>;
  const entries more(new (std::nothrow) char*[count + 2]);
  if (!more)
    return;
  auto* end =
    std::remove_copy_if(environment, environment + count, more.get(), sets);
  *end++ = without;
  *end = nullptr;
  ::execve("/proc/self/exe", argv, more.get()); // continues here on failure
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const before_libraries)(
  int, char**, char**) noexcept = do_without_blas_threads;
#endif

/// With few addresses, makes all threads share one heap. Otherwise glibc's
/// malloc reserves 64 MiB of addresses per thread, until none are left for
/// other allocations.
void share_heap() {
  if (has_few_addresses())
    ::mallopt(M_ARENA_MAX, 1);
}

/// New threads get stacks of the size that `ulimit -s` had when the process
/// started. Raises it to 1 MiB if it is less: library kernels use some 100 KiB
/// of stack.
void enlarge_stacks_of_threads() {
  constexpr std::size_t least = std::size_t{1} << 20;
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) != 0)
    return;
  std::size_t bytes = 0;
  if (::pthread_attr_getstacksize(&attributes, &bytes) == 0 && bytes < least
      && ::pthread_attr_setstacksize(&attributes, least) == 0)
    ::pthread_setattr_default_np(&attributes); // on failure keeps the old size
  ::pthread_attr_destroy(&attributes);
}

/// Raises the limit of this thread's stack to 8 MiB, or as far as the hard
/// limit allows. Returns the limit.
rlim_t enlarge_own_stack() {
  constexpr rlim_t wanted = rlim_t{8} << 20;
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0)
    return wanted;
  if (limit.rlim_cur < wanted) { // RLIM_INFINITY is the largest number
    limit.rlim_cur = std::min(wanted, limit.rlim_max);
    ::setrlimit(RLIMIT_STACK, &limit);
  }
  return limit.rlim_cur;
}

constexpr rlim_t least_own_stack = rlim_t{256} << 10;

/// True if the stack of the first thread is large enough. That thread runs
/// kernels too.
bool has_stack() {
  const auto bytes = enlarge_own_stack();
  enlarge_stacks_of_threads();
  if (bytes >= least_own_stack)
    return true;
  // std::fprintf would take more than 8 KiB of the stack.
  const auto line = "troupe: a stack of " + std::to_string(bytes >> 10)
                    + " KiB (ulimit -s) is too small, "
                    + std::to_string(least_own_stack >> 10)
                    + " KiB are needed\n";
  std::fputs(line.c_str(), stderr);
  return false;
}

/// If a standard stream is closed, the next file that is opened would get its
/// descriptor, and everything written to the stream would go into that file.
/// /dev/null takes the descriptor instead. It is opened for reading, so that
/// writing there still fails.
void occupy_standard_streams() {
  for (int stream = 0; stream <= 2; ++stream)
    if (::fcntl(stream, F_GETFD) == -1)
      ::open("/dev/null", O_RDONLY);
}

} // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  if (!has_stack())
    return 1;
  share_heap();
  // If the reader of the output is gone, the write reports an error. The signal
  // would end the process without a message.
  std::signal(SIGPIPE, SIG_IGN);
  // A file above the limit of `ulimit -f` is reported like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  // SIGUSR1 and SIGUSR2 ask a run for its trace. Until it has begun, it has
  // none; that must not end the process.
  std::signal(SIGUSR1, SIG_IGN);
  std::signal(SIGUSR2, SIG_IGN);
  return troupe::apps::run_command(argc, argv, troupe::apps::source_commit);
}

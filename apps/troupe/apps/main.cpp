// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/command.hpp>
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
#include <string_view>

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace {

bool has_few_addresses() noexcept {
  return troupe::address_limit() != SIZE_MAX;
}

// A sanitizer's code cannot run before the sanitizer is initialized.
#if !defined(TROUPE_SANITIZED)
/// OpenBLAS, when it is loaded, starts a thread for each core but one. Each
/// takes 128 MiB of addresses or waits for them for ever; if one does not
/// start, OpenBLAS interrupts the process. Troupe uses none of them: where
/// addresses or threads are limited, the command begins again without.
///
/// Runs before the libraries are initialized, so it needs nothing of them.
void do_without_blas_threads(int, char** argv, char** environment) noexcept {
  constexpr std::string_view variable = "OPENBLAS_NUM_THREADS=";
  char without[] = "OPENBLAS_NUM_THREADS=1";
  std::size_t count = 0;
  for (; environment[count]; ++count)
    if (std::string_view{environment[count]}.starts_with(variable))
      return;
  if (!has_few_addresses()
      && troupe::try_threads(troupe::usable_cores() - 1) == 0)
    return;
  using entries = std::unique_ptr<char*[]>;
  const entries more(new (std::nothrow) char*[count + 2]);
  if (!more)
    return;
  std::copy(environment, environment + count, more.get());
  more[count] = without;
  more[count + 1] = nullptr;
  ::execve("/proc/self/exe", argv, more.get()); // goes on if it is refused
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const before_libraries)(
  int, char**, char**) noexcept = do_without_blas_threads;
#endif

/// glibc's malloc takes 64 MiB of addresses for each thread, until there are
/// none left for those that it has no such part for.
void share_heap() {
  if (has_few_addresses())
    ::mallopt(M_ARENA_MAX, 1);
}

/// Threads take the limit of `ulimit -s` at the start of the process for their
/// stacks; kernels of the libraries keep some 100 KiB there.
void enlarge_stacks_of_threads() {
  constexpr std::size_t least = std::size_t{1} << 20;
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) != 0)
    return;
  std::size_t bytes = 0;
  if (::pthread_attr_getstacksize(&attributes, &bytes) == 0 && bytes < least
      && ::pthread_attr_setstacksize(&attributes, least) == 0)
    ::pthread_setattr_default_np(&attributes); // else a thread may not start
  ::pthread_attr_destroy(&attributes);
}

/// Raises the limit of this thread's stack as far as it may. Returns it.
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

/// True unless the first thread, which runs kernels too, would overflow.
bool has_stack() {
  const auto bytes = enlarge_own_stack();
  enlarge_stacks_of_threads();
  if (bytes >= least_own_stack)
    return true;
  std::fprintf(stderr,
               "troupe: a stack of %llu KiB (ulimit -s) is too small, %llu KiB "
               "are needed\n",
               static_cast<unsigned long long>(bytes >> 10),
               static_cast<unsigned long long>(least_own_stack >> 10));
  return false;
}

/// A file that is opened while a standard stream is closed would get its
/// number, and with it what is written there. Writing to standard output stays
/// a failure.
void occupy_standard_streams() {
  for (int stream = 0; stream <= 2; ++stream)
    if (::fcntl(stream, F_GETFD) == -1)
      ::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

} // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  if (!has_stack())
    return 1;
  share_heap();
  // Who reads the output may leave: an error, not the end without a word.
  std::signal(SIGPIPE, SIG_IGN);
  // A file over the limit of `ulimit -f` is like one that finds no room.
  std::signal(SIGXFSZ, SIG_IGN);
  return troupe::apps::run_command(argc, argv);
}

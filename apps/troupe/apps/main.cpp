// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/command.hpp>
#include <troupe/kernels/memory/address_space.hpp>

#include <csignal>
#include <cstdint>
#include <cstdlib>

#include <malloc.h>
#include <unistd.h>

namespace {

bool has_few_addresses() {
  return troupe::address_limit() != SIZE_MAX;
}

/// OpenBLAS, when it is loaded, starts a thread for each core but one that
/// takes 128 MiB of addresses or waits for them for ever. Troupe uses none of
/// them: where addresses are limited the command begins again without.
void do_without_blas_threads(char** argv) {
  constexpr auto* threads = "OPENBLAS_NUM_THREADS";
  if (!has_few_addresses() || std::getenv(threads))
    return;
  ::setenv(threads, "1", 1);
  ::execv("/proc/self/exe", argv); // goes on here if the system refuses
}

/// glibc's malloc takes 64 MiB of addresses for each thread, until there are
/// none left for those that it has no such part for.
void share_heap() {
  if (has_few_addresses())
    ::mallopt(M_ARENA_MAX, 1);
}

} // namespace

int main(int argc, char** argv) {
  do_without_blas_threads(argv);
  share_heap();
  // Who reads the output may leave: an error, not the end without a word.
  std::signal(SIGPIPE, SIG_IGN);
  // A file over the limit of `ulimit -f` is like one that finds no room.
  std::signal(SIGXFSZ, SIG_IGN);
  return troupe::apps::run_command(argc, argv);
}

// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/cores.hpp>

#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <pthread.h>
#include <sched.h>

using namespace troupe;

TEST_SUITE("base.cores") {

namespace {

cpu_set_t allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  pthread_getaffinity_np(pthread_self(), sizeof set, &set);
  return set;
}

} // namespace

TEST_CASE("a thread stays on a core for a while and then goes where it may") {
  auto before = allowed();
  for (std::size_t core = 0; core < usable_cores(); ++core) {
    const stay_on_core here{core};
    CHECK(current_core() == core);
    auto now = allowed();
    CHECK(CPU_COUNT(&now) == 1);
  }
  auto after = allowed();
  CHECK(CPU_EQUAL(&before, &after));
}

TEST_CASE("a thread does not go where it was told not to") {
  if (usable_cores() < 2)
    return test::skip_case("needs two cores");
  const stay_on_core first{0};
  {
    const stay_on_core other{1};
    CHECK(current_core() == 0);
  }
  CHECK(current_core() == 0);
}

} // TEST_SUITE("base.cores")

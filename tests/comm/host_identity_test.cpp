// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/host_identity.hpp>

#include <support/child_process.hpp>
#include <support/own_network.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>
#include <sched.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>

using namespace troupe::test;
using troupe::comm::host_identity;

TEST_SUITE("comm.host_identity") {

namespace {

/// What a child process finds after `change`.
std::uint64_t identity_after(const std::function<void()>& change) {
  const pipe_pair found;
  const auto child = in_child([&] {
    change();
    found.put(host_identity());
  });
  const auto identity = found.get<std::uint64_t>();
  CHECK(exit_code(child) == 0);
  return identity;
}

} // namespace

TEST_CASE("the processes of a host agree on its identity") {
  CHECK(host_identity() == host_identity());
  CHECK(identity_after([] {}) == host_identity());
}

TEST_CASE("another name or another network is another host") {
  if (!own_network::is_possible())
    return skip_case("needs the right to make a network of its own");
  CHECK(identity_after([] {
          if (::unshare(CLONE_NEWUTS) != 0 || ::sethostname("other", 5) != 0)
            throw std::runtime_error("no name");
        })
        != host_identity());
  CHECK(identity_after([] {
          if (::unshare(CLONE_NEWNET) != 0)
            throw std::runtime_error("no network");
        })
        != host_identity());
}

} // TEST_SUITE("comm.host_identity")

// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/node_options.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.node_options") {

TEST_CASE("engines have names") {
  using enum group_engine;
  for (const auto engine : {automatic, shared_memory, gloo, mpi})
    CHECK(parse_group_engine(to_string(engine)) == engine);
  CHECK(to_string(shared_memory) == "shm");
  CHECK(to_string(automatic) == "auto");
  const auto e = caught([] { parse_group_engine("nccl"); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "'nccl'; engines are auto, shm, gloo and mpi"));
}

TEST_CASE("the largest number of a process counts, with devices or without") {
  node_options node;
  CHECK(node.processes() == 1);
  node.process_of_device = {0, 2};
  CHECK(node.processes() == 3);
  node.process = 4;
  CHECK(node.processes() == 5);
}

} // TEST_SUITE("actors.node_options")

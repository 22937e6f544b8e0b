// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/rank_part.hpp>
#include <troupe/base/cores.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>
#include <unistd.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::test;

TEST_SUITE("apps.rank_part") {

namespace {

comm::rank_environment rank_of(std::size_t rank, std::size_t size) {
  return {.launcher = "mpirun",
          .rank = rank,
          .size = size,
          .local_rank = rank,
          .local_size = size,
          .job = "test",
          .rendezvous = {}};
}

executor_options on(const std::string& devices) {
  executor_options options;
  options.devices = parse_devices(devices);
  return options;
}

} // namespace

TEST_CASE("a process that no launcher started runs everything") {
  rank_part alone{std::nullopt};
  CHECK(alone.is_first());
  CHECK_FALSE(alone.has_others());
  CHECK(alone.default_threads() == 0);
  auto options = on("cpu:2");
  alone.spread(options, {});
  CHECK_FALSE(options.nodes);
  CHECK(options.devices.size() == 2);
}

TEST_CASE("each rank has the devices that the command names") {
  const temporary_folder folder;
  auto found = rank_of(1, 3);
  found.rendezvous = folder.path().string();
  rank_part second{found};
  auto options = on("cpu:2");
  second.spread(options, {});
  CHECK(options.devices == parse_devices("cpu:6"));
  REQUIRE(options.nodes);
  CHECK(options.nodes->process == 1);
  CHECK(options.nodes->process_of_device
        == std::vector<std::size_t>{0, 0, 1, 1, 2, 2});
  CHECK(options.nodes->pass_folder == found.rendezvous);
  const auto share = second.share_of(2);
  CHECK(share.first_device == 2);
  CHECK(share.devices == 2);
  CHECK(share.all_devices == 6);
}

TEST_CASE("the ranks of a host divide its cores") {
  const rank_part many{rank_of(0, 1000)};
  CHECK(many.default_threads() == 1);
  const auto cores = usable_cores();
  if (cores == static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN)))
    for (std::size_t ranks = 2; ranks <= cores; ++ranks)
      CHECK(rank_part{rank_of(0, ranks)}.default_threads()
            == static_cast<int>(cores / ranks));
}

TEST_CASE("ranks on several hosts must be told where and how they meet") {
  auto found = rank_of(3, 4);
  found.local_size = 2;
  found.local_rank = 1;
  auto options = on("cpu:1");
  const auto e = caught([&] { rank_part{found}.spread(options, {}); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "mpirun started 2 of 4 ranks on this host"));
  CHECK(says(e, "TROUPE_ADDRESS"));
  found.address = "a.example";
  found.port = 4711;
  CHECK(says(caught([&] { rank_part{found}.spread(options, {}); }),
             "TROUPE_CREDENTIALS"));
  found.credentials = "/job";
  options = on("cpu:1");
  rank_part{found}.spread(options,
                          {.engine = "gloo", .data_network = "trusted"});
  REQUIRE(options.nodes);
  CHECK(options.nodes->host == "a.example");
  CHECK(options.nodes->port == 4711);
  CHECK(options.nodes->engine == group_engine::gloo);
  REQUIRE(options.nodes->network);
  CHECK(options.nodes->network->credentials == "/job");
  CHECK(options.nodes->network->is_trusted);
  CHECK(options.nodes->network->interface.empty());
  found.interface = "eth1";
  options = on("cpu:1");
  rank_part part{found};
  part.use_interface("");
  part.spread(options, {.data_network = "trusted"});
  CHECK(options.nodes->network->interface == "eth1");
  part.use_interface("eth2");
  CHECK(part.meeting_on_network().interface == "eth2");
}

TEST_CASE("an epoch on several hosts says where and how its ranks meet") {
  const temporary_folder folder;
  auto found = rank_of(0, 3);
  found.member = 4;
  found.rendezvous = folder.path().string();
  comm::write_epoch(found.rendezvous,
                    {7, {2, 3, 4}, false, {1, 0, 0}, "node-1", 4711});
  rank_part part{found};
  CHECK(part.rank() == 2);
  CHECK(part.size() == 3);
  CHECK(part.is_on_several_hosts());
  CHECK(part.meeting_on_network().local_rank == 1);
  CHECK(part.meeting_on_network().local_size == 2);
  auto options = on("cpu:1");
  part.spread(options, {.engine = "gloo", .data_network = "trusted"});
  REQUIRE(options.nodes);
  CHECK(options.nodes->host == "node-1");
  CHECK(options.nodes->port == 4711);
  REQUIRE(options.nodes->network);
  CHECK(options.nodes->network->credentials
        == comm::credentials_path(found.rendezvous, 7, 4));

  comm::write_epoch(found.rendezvous, {8, {3, 4}});
  part.enter_next_epoch({});
  CHECK_FALSE(part.is_on_several_hosts());
  options = on("cpu:1");
  part.spread(options, {});
  CHECK_FALSE(options.nodes->network);
}

} // TEST_SUITE("apps.rank_part")

// SPDX-License-Identifier: Apache-2.0

// Devices that must have the same parameters, and a device that has not.

#include <troupe/actors/executor.hpp>

#include <actors/remote/process_group.hpp>
#include <actors/small_nets.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>

using namespace troupe;
using namespace troupe::test;
using graph::merge_strategy;

TEST_SUITE("actors.steps.replica_check") {

namespace {

executor_options apart(const small_net& net, merge_strategy strategy) {
  auto options = options_over(3, strategy);
  options.parameters = net.parameters();
  options.lowering.share_parameters = false;
  return options;
}

/// Changes the last bit of a value on a device of this process.
void damage(executor& exe, std::size_t replica, const std::string& name) {
  auto& held = exe.parameters().replica(replica).var(name).as_tensor();
  held.raw()[0] ^= std::byte{1};
}

} // namespace

TEST_CASE("devices that train together have the same parameters") {
  for (auto& net : {make_mlp(), make_resnet(true), make_word2vec()})
    for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce,
                          merge_strategy::replicate}) {
      CAPTURE(net.name);
      CAPTURE(to_string(strategy));
      executor exe{net.main, apart(net, strategy)};
      exe.run(net.batch(0, 7));
      CHECK_NOTHROW(exe.require_same_replicas());
      exe.run(net.batch(1, 2)); // one device has no samples
      CHECK_NOTHROW(exe.require_same_replicas());
    }
}

TEST_CASE("the odd device and the variable are named") {
  const auto net = make_mlp();
  for (std::size_t device : {0, 2}) {
    executor exe{net.main, apart(net, merge_strategy::all_reduce)};
    exe.run(net.batch(0, 7));
    damage(exe, device, "fc_1.w_0");
    const auto e = caught([&] { exe.require_same_replicas(); });
    CHECK(e.code() == errc::invalid_argument);
    CHECK(e.where().variable == "fc_1.w_0");
    CHECK(says(e, "its value on cpu:" + std::to_string(device)
                    + " differs from that of other devices"));
  }
}

TEST_CASE("all processes are told which one is odd, and can go on") {
  const auto net = make_mlp();
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce}) {
    process_group run{3, [&](node_options node) {
                        auto options = apart(net, strategy);
                        const auto process = node.process;
                        options.nodes = std::move(node);
                        executor exe{net.main, options};
                        exe.run(exe.own_share(net.batch(0, 7)));
                        exe.require_same_replicas();
                        if (process == 1)
                          damage(exe, 0, "fc_0.w_0");
                        const auto e =
                          caught([&] { exe.require_same_replicas(); });
                        exe.run(exe.own_share(net.batch(1, 7)));
                        return std::string{e.what()};
                      }};
    for (std::size_t p = 0; p < 3; ++p) {
      const auto end = run.wait(p);
      CHECK(end.exited);
      CHECK(end.last_word.find("its value on cpu:1 differs")
            != std::string::npos);
      CHECK(end.last_word.find("fc_0.w_0") != std::string::npos);
    }
  }
}

} // TEST_SUITE("actors.steps.replica_check")

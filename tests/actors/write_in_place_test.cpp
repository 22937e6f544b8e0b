// SPDX-License-Identifier: Apache-2.0

// Gradient ops of activations overwrite their inputs. Nothing else changes.

#include <troupe/actors/executor.hpp>
#include <troupe/graph/passes/program_order.hpp>

#include <actors/small_nets.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.write_in_place") {

namespace {

const std::vector<std::int64_t> batches(4, 64);

executor_options in_place(bool yes, const char* devices = "cpu:1") {
  executor_options o;
  o.devices = parse_devices(devices);
  o.lowering.write_in_place = yes;
  o.lowering.fuse_batch_norms = false; // relus remain ops of their own
  return o;
}

} // namespace

TEST_CASE("writing in place gives bit-identical training") {
  for (const auto& net :
       {make_mlp(), make_lenet(), make_resnet(true), make_dropout_net()})
    for (auto devices : {"cpu:1", "cpu:2"}) {
      CAPTURE(net.name);
      const auto together = train(net, in_place(true, devices), batches);
      const auto apart = train(net, in_place(false, devices), batches);
      CHECK(together.losses == apart.losses);
      CHECK(bit_equal(*together.parameters, *apart.parameters));
    }
}

TEST_CASE("writing in place reduces memory in program order") {
  const auto peak = [](bool yes) {
    auto options = in_place(yes);
    options.hooks.passes = {graph::run_in_program_order};
    options.steps_in_flight = 1;
    options.threads = 1; // with helpers, memory for parts depends on timing
    return train(make_mlp(), options, batches).peak_bytes;
  };
  CHECK(peak(true) < peak(false));
}

} // TEST_SUITE("actors.write_in_place")

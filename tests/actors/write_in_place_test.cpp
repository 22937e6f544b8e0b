// SPDX-License-Identifier: Apache-2.0

// Gradients of activations overwrite what they read, and nothing else changes.

#include <troupe/actors/executor.hpp>
#include <troupe/graph/passes/program_order.hpp>

#include <actors/small_nets.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <vector>

using namespace troupe;
using namespace troupe::test;

namespace {

struct training {
  std::vector<double> losses;
  std::shared_ptr<scope> parameters;
  std::size_t peak_bytes = 0;
};

training train(const small_net& net, bool in_place, const char* devices,
               bool program_order = false) {
  training t;
  t.parameters = net.parameters();
  executor_options options;
  options.devices = parse_devices(devices);
  options.parameters = t.parameters;
  options.write_in_place = in_place;
  options.fuse_batch_norms = false; // relus stay ops
  if (program_order)
    options.passes = {graph::run_in_program_order};
  executor exe{net.main, std::move(options)};
  for (std::uint64_t i = 0; i < 4; ++i)
    t.losses.push_back(exe.run(net.batch(i, 64)).loss);
  t.peak_bytes = exe.stats().peak_bytes.front();
  return t;
}

} // namespace

TEST_SUITE("actors.write_in_place") {

TEST_CASE("training gives the same bits") {
  for (const auto& net :
       {make_mlp(), make_lenet(), make_resnet(true), make_dropout_net()})
    for (auto devices : {"cpu:1", "cpu:2"}) {
      CAPTURE(net.name);
      const auto in_place = train(net, true, devices);
      const auto apart = train(net, false, devices);
      CHECK(in_place.losses == apart.losses);
      CHECK(bit_equal(*in_place.parameters, *apart.parameters));
    }
}

TEST_CASE("overwriting takes less memory in program order") {
  const auto peak = [](bool in_place) {
    return train(make_mlp(), in_place, "cpu:1", true).peak_bytes;
  };
  CHECK(peak(true) < peak(false));
}

} // TEST_SUITE("actors.write_in_place")

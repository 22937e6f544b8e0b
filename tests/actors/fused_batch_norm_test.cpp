// SPDX-License-Identifier: Apache-2.0

// Batch norms, sums and relus that are fused into one op train like single ops.

#include <troupe/actors/executor.hpp>

#include <actors/small_nets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.fused_batch_norm") {

namespace {

executor_options fused(bool yes, const char* devices = "cpu:1") {
  executor_options o;
  o.devices = parse_devices(devices);
  o.lowering.fuse_batch_norms = yes;
  return o;
}

std::size_t ops_of_type(const executor& exe, const std::string& type) {
  return static_cast<std::size_t>(
    std::ranges::count_if(exe.graph().ops, [&](const graph::op_handle& o) {
      return o.desc->type == type;
    }));
}

/// The variable that the first op of a type writes in a slot.
std::string written_by(const small_net& net, const std::string& type,
                       const char* slot) {
  return std::ranges::find(net.main.main().ops, type, &graph::op_desc::type)
    ->only_output(slot);
}

const std::vector<std::int64_t> batches{8, 7, 1, 8};

} // namespace

TEST_CASE("fused batch norms train bit-identically to single ops") {
  const auto net = make_resnet(true);
  for (auto devices : {"cpu:1", "cpu:2"}) {
    const auto single = train(net, fused(false, devices), batches);
    const auto together = train(net, fused(true, devices), batches);
    CHECK(together.losses == single.losses);
    CHECK(bit_equal(*together.parameters, *single.parameters));
  }
}

TEST_CASE(
  "fused synchronized batch norms train bit-identically to single ops") {
  auto net = make_resnet(true);
  const auto train_on = [&](bool together, const char* devices, bool all) {
    auto options = fused(together, devices);
    options.lowering.sync_batch_norm = all;
    // These give even shards, uneven shards, and devices without samples.
    return train(net, options, std::vector<std::int64_t>{8, 7, 5, 2, 1, 8});
  };
  for (auto devices : {"cpu:2", "cpu:4"}) {
    const auto single = train_on(false, devices, true);
    const auto together = train_on(true, devices, true);
    CHECK(together.losses == single.losses);
    CHECK(bit_equal(*together.parameters, *single.parameters));
  }
  const auto asked_for = train_on(true, "cpu:2", true);
  for (auto& op : net.main.main().ops)
    if (op.type.starts_with("batch_norm"))
      op.type = "sync_" + op.type;
  const auto as_written = train_on(true, "cpu:2", false);
  CHECK(bit_equal(*as_written.parameters, *asked_for.parameters));
}

TEST_CASE("every relu is fused into a synchronized batch norm") {
  const auto net = make_resnet(true);
  auto options = fused(true, "cpu:2");
  options.parameters = net.parameters();
  options.lowering.sync_batch_norm = true;
  const executor exe{net.main, options};
  CHECK(ops_of_type(exe, "relu") == 0);
  CHECK(ops_of_type(exe, "relu_grad") == 0);
  CHECK(ops_of_type(exe, "sync_batch_norm_normalize") > 0);
}

TEST_CASE("every relu after a batch norm is fused") {
  const auto net = make_resnet(true);
  auto options = fused(true);
  options.parameters = net.parameters();
  const executor exe{net.main, options};
  CHECK(ops_of_type(exe, "relu") == 0);
  CHECK(ops_of_type(exe, "relu_grad") == 0);
  CHECK(ops_of_type(exe, "fused_bn_add_activation") > 0);
  CHECK(ops_of_type(exe, "fused_batch_norm_act_grad") > 0);
}

TEST_CASE("a value inside a fused chain can be fetched") {
  const auto net = make_resnet(true);
  const auto name = written_by(net, "batch_norm", "Y");
  std::vector<float> values[2];
  for (const bool yes : {false, true}) {
    auto options = fused(yes);
    options.parameters = net.parameters();
    options.fetches = {name};
    executor exe{net.main, std::move(options)};
    values[yes] = fetch_once(exe, net, name);
  }
  CHECK(values[0].size() > 4);
  CHECK(values[0] == values[1]);
}

} // TEST_SUITE("actors.fused_batch_norm")

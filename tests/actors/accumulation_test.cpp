// SPDX-License-Identifier: Apache-2.0

// Gradients that are added up over steps: N steps train like one step of all
// their samples.

#include <troupe/actors/executor.hpp>

#include <actors/configurations.hpp>
#include <actors/small_nets.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using graph::merge_strategy;

TEST_SUITE("actors.accumulation") {

namespace {

using sizes = std::vector<std::int64_t>;

executor_options on(int devices,
                    merge_strategy strategy = merge_strategy::all_reduce) {
  executor_options o;
  o.devices = parse_devices("cpu:" + std::to_string(devices));
  o.strategy = strategy;
  return o;
}

/// Samples [first, first + count) of a batch.
feed_map part(const feed_map& batch, std::int64_t first, std::int64_t count) {
  feed_map fed;
  for (auto& [name, value] : batch)
    fed[name] = value.rows(first, count);
  return fed;
}

/// Trains on `updates` batches, each in parts of these sizes. If there are
/// fewer parts than steps of an update, the last one ends the update early.
std::shared_ptr<scope> train_in_parts(const small_net& net,
                                      executor_options options,
                                      const sizes& parts,
                                      std::uint64_t updates = 3) {
  const auto parameters = net.parameters();
  options.parameters = parameters;
  const auto all = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  const auto ends_early = parts.size() < options.accumulate;
  executor exe{net.main, options};
  std::vector<step_id> under_way;
  for (std::uint64_t update = 0; update < updates; ++update) {
    const auto batch = net.batch(update, all);
    std::int64_t first = 0;
    for (auto count : parts) {
      if (ends_early && first + count == all)
        exe.update_in_next_step();
      under_way.push_back(exe.submit(part(batch, first, count)));
      first += count;
    }
  }
  for (std::size_t i = 0; i < under_way.size(); ++i)
    CHECK(exe.wait(under_way[i]).updates == ((i + 1) % parts.size() == 0));
  exe.synchronize_parameters();
  return parameters;
}

executor_options accumulating(executor_options o, const sizes& parts) {
  o.accumulate = static_cast<std::uint32_t>(parts.size());
  return o;
}

/// Largest difference to training on whole batches.
double difference_to_whole(const small_net& net, const executor_options& o,
                           const sizes& parts) {
  const sizes whole{
    std::accumulate(parts.begin(), parts.end(), std::int64_t{0})};
  const auto expected =
    values_of(*train_in_parts(net, accumulating(o, whole), whole));
  const auto actual =
    values_of(*train_in_parts(net, accumulating(o, parts), parts));
  REQUIRE(relative_difference(expected, values_of(*net.parameters())) > 1e-3);
  return relative_difference(actual, expected, 1.0);
}

constexpr double rounding = 1e-6;

} // namespace

TEST_CASE("N small batches train like one large one") {
  // The last one leaves devices without samples.
  const std::vector<sizes> all_parts{{8, 8, 8, 8}, {10, 3, 7}, {1, 5, 1}};
  for (const auto& net :
       {make_mlp(), make_lenet(), make_resnet(false), make_word2vec()})
    for (const auto& o :
         {on(1), on(2), on(3), on(2, merge_strategy::reduce),
          on(3, merge_strategy::reduce), on(2, merge_strategy::replicate)})
      for (const auto& parts : all_parts) {
        CAPTURE(net.name);
        CAPTURE(o.devices.size());
        CAPTURE(to_string(o.strategy));
        CAPTURE(parts.size());
        CHECK(difference_to_whole(net, o, parts) < rounding);
      }
}

TEST_CASE("devices that train apart accumulate by samples of their own") {
  // Shards of two devices: 2 and 3, 3 and 1, of which 5 and 4 are trained on.
  const auto net = make_mlp();
  auto o = on(2, merge_strategy::none);
  o.accumulate = 2;
  o.parameters = net.parameters();
  executor exe{net.main, o};
  exe.run(net.batch(0, 5));
  exe.run(net.batch(1, 5));
  auto alone = on(1);
  alone.parameters = net.parameters();
  executor other{net.main, alone};
  auto joined = part(net.batch(0, 5), 0, 3);
  const auto second = part(net.batch(1, 5), 0, 3);
  arena memory{make_host_memory_source()};
  for (auto& [name, value] : joined) {
    auto dims = value.dims();
    dims[0] = 6;
    auto both = tensor::make(memory, dims, value.type());
    const auto& next = second.find(name)->second;
    std::copy(value.raw(), value.raw() + value.bytes(), both.raw());
    std::copy(next.raw(), next.raw() + next.bytes(),
              both.raw() + value.bytes());
    value = both;
  }
  other.run(joined);
  CHECK(relative_difference(values_of(*o.parameters),
                            values_of(*alone.parameters), 1.0)
        < rounding);
}

TEST_CASE("an update can end before it has all of its steps") {
  const auto net = make_mlp();
  const sizes parts{6, 2};
  auto o = on(2);
  o.accumulate = 5;
  const auto early = train_in_parts(net, o, parts);
  o.accumulate = 2;
  CHECK(bit_equal(*early, *train_in_parts(net, o, parts)));
}

TEST_CASE("parameters do not change between updates") {
  const auto net = make_dropout_net(); // adam
  auto o = on(2);
  o.accumulate = 3;
  o.parameters = net.parameters();
  executor exe{net.main, o};
  for (int step = 0; step < 6; ++step) {
    const auto before = values_of(*o.parameters);
    const auto result = exe.run(net.batch(0, 4));
    CHECK(result.updates == (step % 3 == 2));
    CHECK((values_of(*o.parameters) == before) == !result.updates);
  }
}

TEST_CASE("a gradient can be fetched in steps that update parameters") {
  const auto net = make_mlp();
  auto o = on(2);
  o.accumulate = 2;
  o.fetches = {"fc_0.w_0@GRAD"};
  o.parameters = net.parameters();
  executor exe{net.main, o};
  for (int step = 0; step < 4; ++step) {
    const auto result = exe.run(net.batch(0, 4), o.fetches);
    for (auto& value : result.fetched.at(o.fetches[0]))
      CHECK(static_cast<bool>(value) == result.updates);
  }
}

TEST_CASE("statistics of batch norms are updated in each step") {
  const auto net = make_resnet(true);
  for (const bool synchronised : {false, true}) {
    CAPTURE(synchronised);
    auto o = on(2);
    o.lowering.sync_batch_norm = synchronised;
    o.accumulate = 3;
    o.parameters = net.parameters();
    executor exe{net.main, o};
    for (int step = 0; step < 2; ++step) {
      const auto before = values_of(*o.parameters);
      CHECK_FALSE(exe.run(net.batch(7, 4)).updates);
      CHECK(values_of(*o.parameters) != before);
    }
  }
}

TEST_CASE("dropout draws other numbers in each step of an update") {
  const auto net = make_dropout_net();
  auto o = on(1);
  o.accumulate = 4;
  o.seed = 3;
  o.parameters = net.parameters();
  executor exe{net.main, o};
  const auto batch = net.batch(0, 8);
  const auto first = exe.run(batch).loss;
  CHECK(exe.run(batch).loss != first); // parameters are the same
}

TEST_CASE("all ways to run a graph accumulate to the same bits") {
  const auto net = make_lenet();
  const sizes parts{5, 1, 8};
  std::shared_ptr<scope> of_two;
  for (auto& c : all_configurations()) {
    CAPTURE(c.name);
    CHECK(difference_to_whole(net, c.options, parts) < rounding);
    if (c.options.devices.size() != 2
        || c.options.strategy != merge_strategy::all_reduce)
      continue;
    auto options = c.options;
    options.lowering.gather_products = false;
    const auto trained =
      train_in_parts(net, accumulating(options, parts), parts);
    if (of_two)
      CHECK(bit_equal(*trained, *of_two));
    of_two = trained;
  }
  CHECK(of_two);
}

TEST_CASE("steps in flight accumulate to the same bits") {
  const auto net = make_word2vec();
  const sizes parts{5, 1, 8};
  std::shared_ptr<scope> one_by_one;
  for (std::uint32_t in_flight : {1u, 2u, 5u}) {
    auto o = accumulating(on(2), parts);
    o.steps_in_flight = in_flight;
    const auto trained = train_in_parts(net, o, parts);
    if (one_by_one)
      CHECK(bit_equal(*trained, *one_by_one));
    one_by_one = trained;
  }
}

TEST_CASE("after a failed step, the next one begins a new update") {
  const auto net = make_mlp();
  auto bad = net.batch(0, 4);
  bad["label"] =
    clone(bad["label"], *std::make_unique<arena>(make_host_memory_source()));
  bad["label"].values<std::int64_t>()[3] = 99;
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce}) {
    auto o = on(2, strategy);
    o.accumulate = 3;
    o.parameters = net.parameters();
    executor exe{net.main, o};
    exe.run(net.batch(0, 4)); // of a first update
    CHECK(caught([&] { exe.run(bad); }).code() == errc::out_of_range);
    CHECK(values_of(*o.parameters) == values_of(*net.parameters()));
    std::uint64_t seed = 2;
    for (const bool updates : {false, false, true, false, false, true})
      CHECK(exe.run(net.batch(seed++, 4)).updates == updates);
    exe.synchronize_parameters();
    auto clean = on(2, strategy);
    clean.accumulate = 3;
    clean.parameters = net.parameters();
    executor other{net.main, clean};
    for (seed = 2; seed < 8; ++seed)
      other.run(net.batch(seed, 4));
    other.synchronize_parameters();
    CHECK(bit_equal(*o.parameters, *clean.parameters));
  }
}

TEST_CASE("a run that continues another one begins with a new update") {
  const auto net = make_mlp();
  auto o = on(1);
  o.accumulate = 2;
  o.parameters = net.parameters();
  executor exe{net.main, o};
  CHECK_FALSE(exe.run(net.batch(0, 4)).updates);
  exe.continue_from(7);
  CHECK_FALSE(exe.run(net.batch(0, 4)).updates);
  CHECK(exe.run(net.batch(0, 4)).updates);
}

TEST_CASE("no steps per update are refused") {
  const auto net = make_mlp();
  auto o = on(1);
  o.accumulate = 0;
  o.parameters = net.parameters();
  CHECK(caught([&] { executor(net.main, o); }).code()
        == errc::invalid_argument);
}

} // TEST_SUITE("actors.accumulation")

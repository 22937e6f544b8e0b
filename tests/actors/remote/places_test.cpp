// SPDX-License-Identifier: Apache-2.0

// A graph that is split over places, which exchange values, gives the same bits
// as the whole graph.

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/executor.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>

#include "../late_device.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using graph::merge_strategy;

TEST_SUITE("actors.remote.places") {

namespace {

using places = std::vector<std::uint32_t>;

constexpr auto strategies = {merge_strategy::all_reduce, merge_strategy::reduce,
                             merge_strategy::replicate, merge_strategy::none};

executor_options on(int devices, merge_strategy strategy,
                    const places& split = {}) {
  executor_options o;
  o.devices = parse_devices("cpu:" + std::to_string(devices));
  o.strategy = strategy;
  o.lowering.gather_products = false; // rounds differently; off over places
  o.hooks.places = split;
  return o;
}

// Some give shards of different sizes, some leave devices without samples.
const std::vector<std::int64_t> batches{7, 2, 1, 8, 3, 1, 5, 6};

/// True if the parameters are the same on every device.
bool same_parameters(training a, training b, std::size_t devices) {
  auto same = bit_equal(*a.parameters, *b.parameters);
  for (std::size_t d = 1; d < devices; ++d)
    same &= bit_equal(a.parameters->replica(d), b.parameters->replica(d));
  return same;
}

/// The first fed variable of the first device.
handle_id feed_of(const graph::ssa_graph& g) {
  return std::ranges::find_if(g.vars, [](auto& v) { return v.feed; })->id;
}

/// Asks until a handle is done in all running steps. False if that takes too
/// long.
bool is_soon_done(const executor& exe, handle_id id) {
  const auto until =
    std::chrono::steady_clock::now() + std::chrono::seconds{60};
  while (std::chrono::steady_clock::now() < until) {
    if (exe.why(id).links.front().how_far == actors::progress::is_done)
      return true;
    std::this_thread::yield();
  }
  return false;
}

} // namespace

TEST_CASE("two places train bit-identically to one with every strategy") {
  for (auto& net : {make_mlp(), make_lenet(), make_word2vec(),
                    make_resnet(true), make_dropout_net()})
    for (auto strategy : strategies) {
      CAPTURE(net.name);
      CAPTURE(to_string(strategy));
      auto one = on(2, strategy);
      one.lowering.share_parameters =
        false; // each device then has its own parameters to compare
      const auto expected = train(net, one, batches);
      for (std::uint32_t in_flight : {1u, 2u, 4u}) {
        CAPTURE(in_flight);
        auto two = on(2, strategy, {0, 1});
        two.steps_in_flight = in_flight;
        const auto t = train(net, two, batches);
        CHECK(t.losses == expected.losses);
        CHECK(same_parameters(t, expected, 2));
      }
    }
}

TEST_CASE("any split of four devices into places trains bit-identically") {
  const auto net = make_lenet();
  for (auto strategy : strategies) {
    auto one = on(4, strategy);
    one.lowering.share_parameters = false;
    const auto expected = train(net, one, batches);
    for (auto& split : {places{0, 0, 1, 1}, places{1, 0, 1, 0},
                        places{3, 2, 1, 0}, places{7, 7, 7, 0}}) {
      const auto t = train(net, on(4, strategy, split), batches);
      CHECK(t.losses == expected.losses);
      CHECK(same_parameters(t, expected, 4));
    }
  }
}

TEST_CASE("form and order of messages do not change training over places") {
  const auto net = make_lenet();
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce}) {
    auto one = on(2, strategy);
    one.lowering.share_parameters = false;
    const auto expected = train(net, one, batches);
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      CAPTURE(seed);
      auto two = on(2, strategy, {1, 0});
      two.hooks.form = std::array{edge_form::counter, edge_form::message,
                                  edge_form::mixed}[seed % 3];
      two.hooks.shuffle.emplace().seed = seed;
      two.steps_in_flight = 1 + static_cast<std::uint32_t>(seed % 4);
      const auto t = train(net, two, batches);
      CHECK(t.losses == expected.losses);
      CHECK(same_parameters(t, expected, 2));
    }
  }
}

TEST_CASE("devices that complete late do not change training over places") {
  const auto net = make_mlp();
  const auto few = std::span{batches}.first(4);
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce}) {
    auto one = on(2, strategy);
    one.lowering.share_parameters = false;
    const auto expected = train(net, one, few);
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      CAPTURE(seed);
      auto two = on(2, strategy, {0, 1});
      // One device completes late, or both do.
      two.hooks.device_instances = make_devices(two.devices);
      for (int d = 0; d < 2; ++d)
        if (seed % 3 != static_cast<std::uint64_t>(d))
          two.hooks.device_instances[static_cast<std::size_t>(d)] =
            make_late_device(d, seed, 20);
      const auto t = train(net, two, few);
      CHECK(t.losses == expected.losses);
      CHECK(same_parameters(t, expected, 2));
    }
  }
}

TEST_CASE("a failure in one place ends the step, and a later step runs") {
  const auto net = make_mlp();
  for (auto strategy : strategies)
    for (std::size_t bad_sample : {0, 3}) { // of device 0, of device 1
      CAPTURE(bad_sample);
      auto options = on(2, strategy, {0, 1});
      options.parameters = net.parameters();
      options.steps_in_flight = 3;
      executor exe{net.main, options};
      auto bad = net.batch(0, 4);
      bad["label"].values<std::int64_t>()[bad_sample] = 99;
      for (int round = 0; round < 20; ++round) {
        const auto good = exe.submit(net.batch(0, 4));
        const auto failing = exe.submit(bad);
        const auto behind = exe.submit(net.batch(1, 4));
        CHECK_NOTHROW(exe.wait(good));
        const auto e = caught([&] { exe.wait(failing); });
        CHECK(e.code() == errc::out_of_range);
        CHECK(e.where().device == (bad_sample == 0 ? "cpu:0" : "cpu:1"));
        try {
          exe.wait(behind); // admitted before or after the failure
        } catch (const error& cancelled) {
          CHECK(cancelled.code() == errc::cancelled);
        }
        CHECK_NOTHROW(exe.run(net.batch(2, 4)));
      }
    }
}

TEST_CASE("steps over places can be cancelled at any time") {
  const auto net = make_mlp();
  auto options = on(2, merge_strategy::reduce, {0, 1});
  options.parameters = net.parameters();
  options.steps_in_flight = 3;
  executor exe{net.main, options};
  for (int round = 0; round < 50; ++round) {
    std::vector<step_id> under_way;
    for (std::uint64_t i = 0; i < 3; ++i)
      under_way.push_back(exe.submit(net.batch(i, 4)));
    exe.cancel();
    for (auto id : under_way)
      try {
        exe.wait(id); // it may have ended before
      } catch (const error& e) {
        CHECK(e.code() == errc::cancelled);
      }
    if (round % 10 == 0)
      CHECK_NOTHROW(exe.run(net.batch(0, 4)));
  }
}

TEST_CASE("an executor over places can be destroyed while steps run") {
  const auto net = make_mlp();
  for (int round = 0; round < 20; ++round) {
    auto options = on(2, merge_strategy::all_reduce, {0, 1});
    options.parameters = net.parameters();
    executor exe{net.main, options};
    exe.submit(net.batch(0, 4));
    exe.submit(net.batch(1, 4));
  }
}

TEST_CASE("a dry run over places transfers nothing") {
  const auto net = make_mlp();
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce,
                        merge_strategy::replicate}) {
    CAPTURE(to_string(strategy));
    auto options = on(2, strategy, {0, 1});
    options.hooks.dry_run = true;
    const auto feed = feed_of(executor{net.main, options}.graph());
    options.hooks.shuffle =
      delivery_shuffle{.seed = {}, .withheld = message_id{no_handle, feed, 1}};
    executor exe{net.main, options};
    exe.run(net.batch(0, 4));
    const auto stopped = exe.submit(net.batch(1, 4));
    // The first place is stopped. The second one does not wait for it.
    for (auto& o : exe.graph().ops)
      if (o.device == 1)
        CHECK(is_soon_done(exe, o.id));
    CHECK(exe.why(feed).links.front().how_far == actors::progress::waits);
    let_go(exe);
    exe.wait(stopped);
    exe.run(net.batch(2, 4));
    const auto stats = exe.stats();
    CHECK(stats.steps == 3);
    CHECK(stats.messages == 3 * stats.messages_per_step);
    CHECK(stats.peak_bytes == std::vector<std::size_t>{0, 0});
  }
}

TEST_CASE("a pass that makes an op use another place's variable is refused") {
  const auto net = make_mlp();
  auto options = on(2, merge_strategy::all_reduce, {0, 1});
  options.parameters = net.parameters();
  options.hooks.passes = {[](graph::ssa_graph g) {
    for (auto& o : g.ops)
      if (o.kind == graph::op_kind::computation && o.device == 1) {
        o.device = 0;
        break;
      }
    return g;
  }};
  const auto e = caught([&] { executor exe(net.main, options); });
  CHECK(e.code() == errc::graph_invalid);
  CHECK(says(e, "uses a variable of another place"));
}

TEST_CASE("the number of places must equal the number of devices") {
  const auto net = make_mlp();
  auto options = on(2, merge_strategy::all_reduce, {0, 1, 2});
  options.parameters = net.parameters();
  const auto e = caught([&] { executor exe(net.main, options); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "a place must be given for each of the 2 devices, not for 3"));
}

} // TEST_SUITE("actors.remote.places")

// SPDX-License-Identifier: Apache-2.0

// Handles on other devices than their own, in one process and over places, give
// the bits of those that have not been moved.

#include <troupe/actors/executor.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using graph::merge_strategy;

TEST_SUITE("actors.remote.placed_handles") {

namespace {

using table = std::vector<graph::handle_place>;
using places = std::vector<std::uint32_t>;

executor_options on(int devices, merge_strategy strategy, const table& lines,
                    const places& split) {
  executor_options o;
  o.devices = parse_devices("cpu:" + std::to_string(devices));
  o.strategy = strategy;
  o.places = lines;
  o.hooks.places = split;
  // Off over places; some round differently.
  o.lowering.gather_products = o.lowering.share_parameters =
    o.lowering.merge_in_updates = o.lowering.kernel_layouts = false;
  return o;
}

// Some leave devices without samples.
const std::vector<std::int64_t> batches{7, 2, 1, 8, 3, 1};

bool same_parameters(training a, training b, std::size_t devices) {
  auto same = bit_equal(*a.parameters, *b.parameters);
  for (std::size_t d = 1; d < devices; ++d)
    same &= bit_equal(a.parameters->replica(d), b.parameters->replica(d));
  return same;
}

/// Patterns that fit in every net here; earlier ones leave something to later
/// ones.
table random_table(std::uint64_t seed, std::uint32_t devices) {
  std::mt19937_64 draw{seed};
  table lines;
  for (const auto* pattern :
       {"scale_loss_grad#*@cpu:1", "*_grad#*3@*", "*#*6@cpu:0",
        "*@GRAD:v1@cpu:1", "*_grad#*@cpu:1", "*tmp*:v1@cpu:0", "*#*@cpu:1"})
    if (draw() % 2 == 0)
      lines.push_back({pattern, static_cast<std::uint32_t>(draw() % devices),
                       "line of seed " + std::to_string(seed)});
  return lines;
}

} // namespace

TEST_CASE("placed handles train bit-identically, within and over places") {
  for (auto& net : {make_mlp(), make_lenet(), make_word2vec(),
                    make_resnet(true), make_dropout_net()})
    for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce,
                          merge_strategy::replicate}) {
      CAPTURE(net.name);
      CAPTURE(to_string(strategy));
      const auto expected = train(net, on(2, strategy, {}, {}), batches);
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        CAPTURE(seed);
        for (auto& split : {places{}, places{0, 1}}) {
          auto options = on(2, strategy, random_table(seed, 2), split);
          options.steps_in_flight = 1 + static_cast<std::uint32_t>(seed % 3);
          const auto t = train(net, options, batches);
          CHECK(t.losses == expected.losses);
          CHECK(same_parameters(t, expected, 2));
        }
      }
    }
}

TEST_CASE("all ops of all devices can run in one place") {
  const auto net = make_lenet();
  for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce}) {
    const auto expected = train(net, on(3, strategy, {}, {}), batches);
    for (std::uint32_t rank : {0u, 1u, 2u}) {
      const auto t =
        train(net, on(3, strategy, {{"*#*", rank, "a"}}, {0, 1, 2}), batches);
      CHECK(t.losses == expected.losses);
      CHECK(same_parameters(t, expected, 3));
    }
  }
}

TEST_CASE("placed handles accumulate gradients to the same bits") {
  const auto accumulating = [](executor_options o) {
    o.accumulate = 3; // six steps are two updates
    return o;
  };
  for (auto& net : {make_mlp(), make_word2vec(), make_resnet(true)})
    for (auto strategy : {merge_strategy::all_reduce, merge_strategy::reduce}) {
      CAPTURE(net.name);
      CAPTURE(to_string(strategy));
      const auto expected =
        train(net, accumulating(on(2, strategy, {}, {})), batches);
      const auto check = [&](const table& lines) {
        for (auto& split : {places{}, places{0, 1}}) {
          const auto t =
            train(net, accumulating(on(2, strategy, lines, split)), batches);
          CHECK(t.losses == expected.losses);
          CHECK(same_parameters(t, expected, 2));
        }
      };
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        CAPTURE(seed);
        check(random_table(seed, 2));
      }
      for (std::uint32_t rank : {0u, 1u}) {
        check({{"*#*", rank, "all ops"}});
        check({{"accumulate#*", rank, "sums"}});
        check({{"*_grad#*", rank, "what is summed"}});
      }
      CHECK_FALSE(bit_equal(*expected.parameters, *net.parameters()));
    }
}

TEST_CASE("order and form of messages do not change placed training") {
  const auto net = make_mlp();
  const auto expected =
    train(net, on(2, merge_strategy::all_reduce, {}, {}), batches);
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    auto options =
      on(2, merge_strategy::all_reduce, random_table(seed, 2), {0, 1});
    options.hooks.form = edge_form::mixed;
    options.hooks.shuffle.emplace().seed = seed;
    options.steps_in_flight = 1 + static_cast<std::uint32_t>(seed % 4);
    const auto t = train(net, options, batches);
    CHECK(t.losses == expected.losses);
    CHECK(same_parameters(t, expected, 2));
  }
}

TEST_CASE("an op that fails on another device names that device") {
  const auto net = make_mlp();
  auto options =
    on(2, merge_strategy::all_reduce, {{"softmax*@cpu:1", 0, "a"}}, {0, 1});
  options.parameters = net.parameters();
  executor exe{net.main, options};
  auto bad = net.batch(0, 4);
  bad["label"].values<std::int64_t>()[3] = 99; // of device 1
  const auto e = caught([&] { exe.run(bad); });
  CHECK(e.code() == errc::out_of_range);
  CHECK(e.where().device == "cpu:0");
  CHECK_NOTHROW(exe.run(net.batch(1, 4)));
}

TEST_CASE("a pattern that fits nothing is refused before anything runs") {
  const auto net = make_mlp();
  auto options =
    on(2, merge_strategy::all_reduce, {{"conv*", 0, "p, line 1"}}, {0, 1});
  options.parameters = net.parameters();
  const auto e = caught([&] { executor exe{net.main, options}; });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "p, line 1: 'conv*' fits no handle"));
}

} // TEST_SUITE("actors.remote.placed_handles")

// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/steps/scatter.hpp>

#include <support/caught.hpp>

#include <troupe/graph/network.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::test;

TEST_SUITE("actors.scatter") {

namespace {

arena& memory() {
  static arena made{make_host_memory_source()};
  return made;
}

tensor floats(const shape& dims, float first) {
  auto t = tensor::make(memory(), dims, dtype::float32);
  for (auto& v : t.values<float>())
    v = first++;
  return t;
}

tensor labels(std::int64_t samples) {
  auto t = tensor::make(memory(), {samples, 1}, dtype::int64);
  for (auto& v : t.values<std::int64_t>())
    v = 0;
  return t;
}

/// Declares x [-1, 3] float32 and y [-1, 1] int64.
struct declared {
  graph::network net;
  std::vector<std::string> needed{"x", "y"};
  declared() {
    net.data("x", {-1, 3});
    net.data("y", {-1, 1}, dtype::int64);
  }
  std::int64_t check(const feed_map& feeds) {
    return check_feeds(feeds, {needed, net.main.main()}, net.main.main(), 2);
  }
  error failure(const feed_map& feeds) {
    return caught([&] { check(feeds); });
  }
};

feed_map fed(tensor x, tensor y) {
  feed_map feeds;
  feeds["x"] = std::move(x);
  feeds["y"] = std::move(y);
  return feeds;
}

} // namespace

TEST_CASE("shards are contiguous and differ by at most one sample") {
  for (std::int64_t n = 0; n <= 40; ++n)
    for (std::size_t devices = 1; devices <= 17; ++devices) {
      const auto shards = split_batch(n, devices, 5, 99);
      REQUIRE(shards.size() == devices);
      std::int64_t next = 0;
      auto previous = shards.front().shard_samples;
      auto whole = true;
      for (auto& s : shards) {
        whole &= s.step == 5 && s.seed == 99 && s.batch_samples == n;
        whole &= s.first_sample == next && s.shard_samples >= 0;
        whole &= s.shard_samples <= previous; // the larger ones first
        whole &= shards.front().shard_samples - s.shard_samples <= 1;
        next += s.shard_samples;
        previous = s.shard_samples;
      }
      CAPTURE(n);
      CAPTURE(devices);
      CHECK(whole);
      CHECK(next == n);
    }
}

TEST_CASE("large batches are split without overflow") {
  const auto n = std::numeric_limits<std::int64_t>::max();
  const auto shards = split_batch(n, 3, 0, 0);
  CHECK(shards[2].first_sample + shards[2].shard_samples == n);
}

TEST_CASE("checking valid feeds returns the number of samples") {
  declared d;
  CHECK(d.check(fed(floats({4, 3}, 0), labels(4))) == 4);
  CHECK(d.check(fed(floats({1, 3}, 0), labels(1))) == 1);
}

TEST_CASE("a program without feeds has one sample per device") {
  declared d;
  CHECK(check_feeds({}, needed_feeds{}, d.net.main.main(), 3) == 3);
}

TEST_CASE("feeds with a fixed axis 0 are whole if other feeds leave it open") {
  declared d;
  d.net.data("heat", {1});
  d.net.data("weights", {7, 3});
  d.needed.insert(d.needed.end(), {"heat", "weights"});
  auto feeds = fed(floats({4, 3}, 0), labels(4));
  feeds["heat"] = floats({1}, 0);
  feeds["weights"] = floats({7, 3}, 0);
  CHECK(d.check(feeds) == 4);
  const needed_feeds needed{d.needed, d.net.main.main()};
  CHECK(needed.whole == std::vector<std::string>{"heat", "weights"});
  feeds["weights"] = floats({4, 3}, 0);
  CHECK(d.failure(feeds).where().variable == "weights");
}

TEST_CASE("no feed is whole if all feeds have a fixed axis 0") {
  graph::network net;
  net.data("x", {4, 3});
  net.data("y", {4, 1});
  CHECK(needed_feeds{{"x", "y"}, net.main.main()}.whole.empty());
}

TEST_CASE("errors about wrong feeds name the feed and what was expected") {
  declared d;
  auto e = d.failure(fed(floats({4, 2}, 0), labels(4)));
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(e.where().variable == "x");
  CHECK(says(e, "[4, 2]"));
  CHECK(says(e, "[-1, 3]"));
  e = d.failure(fed(floats({4, 3, 1}, 0), labels(4)));
  CHECK(e.code() == errc::shape_mismatch);
  e = d.failure(fed(floats({}, 0), labels(4)));
  CHECK(e.code() == errc::shape_mismatch);
  e = d.failure(fed(floats({4, 3}, 0), floats({4, 1}, 0)));
  CHECK(e.code() == errc::dtype_mismatch);
  CHECK(e.where().variable == "y");
  e = d.failure(fed(floats({4, 3}, 0), labels(5)));
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(says(e, "5 samples"));
  e = d.failure(fed(floats({0, 3}, 0), labels(0)));
  CHECK(e.code() == errc::invalid_argument);
  e = d.failure(fed(tensor{}, labels(4)));
  CHECK(e.code() == errc::invalid_argument);
  CHECK(e.where().variable == "x");
}

TEST_CASE("missing and unknown feeds are named") {
  declared d;
  feed_map feeds;
  feeds["x"] = floats({2, 3}, 0);
  CHECK(d.failure(feeds).where().variable == "y");
  feeds["y"] = labels(2);
  feeds["z"] = labels(2);
  const auto e = d.failure(feeds);
  CHECK(e.code() == errc::not_found);
  CHECK(e.where().variable == "z");
}

TEST_CASE("the batch loss weights devices by their number of samples") {
  const auto shards = split_batch(5, 3, 8, 0); // 2, 2, 1
  const auto r = gather({8, samples_of(shards)}, "loss",
                        {{"loss", 0, floats({1}, 1)},
                         {"loss", 1, floats({1}, 2)},
                         {"loss", 2, floats({1}, 7)}},
                        {});
  CHECK(r.step == 8);
  CHECK(r.losses == std::vector<double>{1, 2, 7});
  CHECK(r.loss == doctest::Approx((2 * 1 + 2 * 2 + 1 * 7) / 5.0));
  CHECK(r.samples == std::vector<std::int64_t>{2, 2, 1});
  CHECK(r.fetched.empty());
}

TEST_CASE("an idle device has no loss and does not count in the mean") {
  const auto shards = split_batch(1, 2, 0, 0);
  const auto r =
    gather({0, samples_of(shards)}, "loss",
           {{"loss", 0, floats({1}, 3)}, {"loss", 1, tensor{}}}, {});
  CHECK(r.loss == 3);
  CHECK(std::isnan(r.losses[1]));
}

TEST_CASE("a loss of several elements is averaged") {
  const auto shards = split_batch(3, 1, 0, 0);
  const auto r = gather({0, samples_of(shards)}, "loss",
                        {{"loss", 0, floats({3, 1}, 1)}}, {});
  CHECK(r.loss == 2);
}

TEST_CASE("the result of a program without a loss has no losses") {
  const auto r = gather({0, samples_of(split_batch(3, 2, 0, 0))}, "", {}, {});
  CHECK(r.losses.empty());
  CHECK(std::isnan(r.loss));
}

TEST_CASE("fetched tensors are joined in device order, skipping idle devices") {
  const auto shards = split_batch(3, 4, 0, 0);
  const auto r = gather({0, samples_of(shards)}, "",
                        {{"x", 1, floats({1, 2}, 10)},
                         {"x", 0, floats({1, 2}, 0)},
                         {"x", 2, floats({1, 2}, 20)}},
                        {"x", "never_made"});
  REQUIRE(r.fetched.at("x").size() == 4);
  CHECK_FALSE(r.fetched.at("x")[3]);
  const auto joined = r.merged("x");
  CHECK(joined.dims() == shape{3, 2});
  const std::vector<float> expected{0, 1, 10, 11, 20, 21};
  const auto got = joined.values<float>();
  CHECK(std::vector<float>(got.begin(), got.end()) == expected);
  CHECK_FALSE(r.merged("never_made"));
  const auto e = caught([&] { (void)r.merged("y"); });
  CHECK(e.code() == errc::not_found);
  CHECK(e.where().variable == "y");
}

TEST_CASE("the scalars of several devices become a vector") {
  const auto r =
    gather({0, samples_of(split_batch(2, 3, 0, 0))}, "",
           {{"s", 0, floats({}, 4)}, {"s", 1, floats({}, 5)}}, {"s"});
  const auto joined = r.merged("s");
  CHECK(joined.dims() == shape{2});
  CHECK(joined.values<float>()[0] == 4);
  CHECK(joined.values<float>()[1] == 5);
}

TEST_CASE("the scalar of a single device stays a scalar") {
  const auto r = gather({0, samples_of(split_batch(2, 1, 0, 0))}, "",
                        {{"s", 0, floats({}, 4)}}, {"s"});
  CHECK(r.merged("s").dims() == shape{});
  CHECK(r.merged("s").values<float>()[0] == 4);
}

TEST_CASE("each sequence counts as one sample") {
  declared d;
  auto x = floats({5, 3}, 0);
  x.set_levels(make_lod({{0, 2, 5}}, 5));
  CHECK(d.check(fed(x, labels(2))) == 2);
  const auto e = d.failure(fed(x, labels(5)));
  CHECK(e.code() == errc::shape_mismatch);
  x.set_levels(std::make_shared<const lod>(lod{{0, 2, 4}}));
  CHECK(d.failure(fed(x, labels(2))).code() == errc::invalid_argument);
}

TEST_CASE("a feed declared as sequences must have offsets") {
  declared d;
  d.net.main.main().find_var("x")->lod_level = 1;
  const auto e = d.failure(fed(floats({2, 3}, 0), labels(2)));
  CHECK(e.code() == errc::invalid_argument);
  CHECK(e.where().variable == "x");
}

TEST_CASE("sequences of several devices are concatenated") {
  const auto part = [](std::int64_t rows, lod levels) {
    auto t = floats({rows, 1}, 0);
    t.set_levels(make_lod(std::move(levels), rows));
    return t;
  };
  const auto r = gather(
    {0, samples_of(split_batch(3, 2, 0, 0))}, "",
    {{"x", 0, part(3, {{0, 1, 3}})}, {"x", 1, part(2, {{0, 2}})}}, {"x"});
  CHECK(*r.merged("x").levels() == lod{{0, 1, 3, 5}});
}

} // TEST_SUITE("actors.scatter")

// SPDX-License-Identifier: Apache-2.0

// Who is called slow, on made-up times.

#include <troupe/apps/stragglers/straggler_finder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace troupe::apps;

TEST_SUITE("apps.stragglers.straggler_finder") {

namespace {

constexpr int steps = 20;

/// Times of the ops of ranks, in windows.
struct job {
  explicit job(unsigned seed) : random(seed) {}

  std::mt19937 random;
  double noise = 0.05;   ///< standard deviation of the logarithm of a time
  double heavy_tail = 0; ///< chance that an op takes ten times as long
  std::vector<std::pair<std::string, double>> types = {
    {"conv2d", 12}, {"conv2d_grad", 25}, {"batch_norm", 3},
    {"relu", 2},    {"momentum", 1.5},   {"reshape", 0.01}};

  /// @param slow factor by type, "*" for all
  op_digest rank(const std::vector<std::pair<std::string, double>>& slow = {},
                 double drift = 1) {
    op_digest made;
    std::normal_distribution<double> spread{0, noise};
    std::uniform_real_distribution<double> chance{0, 1};
    for (auto& [type, ms] : types) {
      auto& row = made.rows.emplace_back(op_digest::row{type, {}});
      auto factor = drift;
      for (auto& [which, times] : slow)
        if (which == type || which == "*")
          factor *= times;
      for (int s = 0; s < steps; ++s)
        row.ms.push_back(
          static_cast<float>(ms * factor * std::exp(spread(random))
                             * (chance(random) < heavy_tail ? 10 : 1)));
    }
    return made;
  }
};

std::size_t accusations(job& of, int windows, std::size_t ranks,
                        double drift_per_window = 1) {
  straggler_finder finder{ranks};
  std::size_t count = 0;
  double drift = 1;
  for (int w = 0; w < windows; ++w) {
    std::vector<op_digest> all;
    for (std::size_t r = 0; r < ranks; ++r)
      all.push_back(of.rank({}, drift));
    count += finder.add(all).size();
    drift *= drift_per_window;
  }
  return count;
}

} // namespace

TEST_CASE("one type of ops at 1.2 times its time is named in two windows") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    job of{seed};
    straggler_finder finder{2};
    const auto window = [&] {
      return std::vector<op_digest>{of.rank(), of.rank({{"conv2d", 1.2}})};
    };
    CHECK(finder.add(window()).empty());
    const auto found = finder.add(window());
    REQUIRE(found.size() == 1);
    CHECK(found[0].rank == 1);
    CHECK(found[0].type == "conv2d");
    CHECK(found[0].factor > 1.12);
    CHECK(found[0].factor < 1.28);
    CHECK(finder.add(window()).empty()); // it is named once
  }
}

TEST_CASE("a straggler that recovers can be named again") {
  job of{1};
  straggler_finder finder{2};
  std::size_t named = 0;
  for (int w = 0; w < 9; ++w) {
    const bool is_slow = w / 3 != 1;
    named +=
      finder.add({of.rank(), is_slow ? of.rank({{"relu", 1.5}}) : of.rank()})
        .size();
  }
  CHECK(named == 2);
}

TEST_CASE("one slow rank of four is named against the others") {
  job of{3};
  straggler_finder finder{4};
  std::vector<straggler> found;
  for (int w = 0; w < 2; ++w)
    found = finder.add(
      {of.rank(), of.rank(), of.rank({{"batch_norm", 1.4}}), of.rank()});
  REQUIRE(found.size() == 1);
  CHECK(found[0].rank == 2);
  CHECK(found[0].type == "batch_norm");
}

TEST_CASE("a slow core makes a slow rank, not slow ops") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    job of{seed};
    straggler_finder finder{2};
    std::vector<straggler> found;
    for (int w = 0; w < 2; ++w)
      found = finder.add({of.rank(), of.rank({{"*", 1.3}})});
    REQUIRE(found.size() == 1);
    CHECK(found[0].rank == 1);
    CHECK(found[0].type.empty());
    CHECK(found[0].factor > 1.2);
    CHECK(found[0].factor < 1.4);
  }
}

TEST_CASE("a rank that is preempted is not called slow") {
  job of{1};
  straggler_finder finder{2};
  for (int w = 0; w < 4; ++w) {
    std::vector<op_digest> all{of.rank(), of.rank({{"*", 1.3}})};
    all[1].preempted = 0.2f;
    CHECK(finder.add(all).empty());
  }
}

TEST_CASE("ranks that differ by noise are not accused") {
  for (unsigned seed = 0; seed < 20; ++seed)
    for (const double noise : {0.02, 0.1, 0.3})
      for (const std::size_t ranks : {2, 4}) {
        job of{seed};
        of.noise = noise;
        CHECK(accusations(of, 50, ranks) == 0);
      }
}

TEST_CASE("ops that now and then take ten times as long accuse nobody") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    job of{seed};
    of.heavy_tail = 0.2;
    CHECK(accusations(of, 50, 2) == 0);
  }
}

TEST_CASE("a drift of all ranks accuses nobody") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    job of{seed};
    CHECK(accusations(of, 20, 3, 1.1) == 0);
    CHECK(accusations(of, 20, 3, 0.9) == 0);
  }
}

TEST_CASE("a type that takes hardly any time, or that a rank lacks, is left "
          "out") {
  job of{1};
  straggler_finder finder{2};
  for (int w = 0; w < 3; ++w) {
    auto other = of.rank({{"reshape", 5}});
    other.rows.push_back({"recv_only", std::vector<float>(steps, 9.0f)});
    CHECK(finder.add({of.rank(), other}).empty());
  }
}

TEST_CASE("a line names rank, type, factor and times") {
  CHECK(text_of({1, "conv2d", 1.195, 14.1, 11.8, 20}, 2)
        == "rank 1 is slow: conv2d takes 1.20 times as long as on rank 0 "
           "(14.10 against 11.80 ms per step over 20 steps)");
  CHECK(text_of({3, "", 1.3, 130, 100, 20}, 4)
        == "rank 3 is slow: all ops take 1.30 times as long as on the others "
           "(130.00 against 100.00 ms per step over 20 steps)");
}

TEST_CASE("a digest is read as it was written") {
  job of{1};
  auto digest = of.rank();
  digest.preempted = 0.25f;
  const auto text = write_digest(digest);
  const auto again = read_digest(text);
  REQUIRE(again);
  CHECK(again->preempted == 0.25f);
  REQUIRE(again->rows.size() == digest.rows.size());
  for (std::size_t i = 0; i < digest.rows.size(); ++i) {
    CHECK(again->rows[i].type == digest.rows[i].type);
    for (int s = 0; s < steps; ++s)
      CHECK(again->rows[i].ms[std::size_t(s)]
            == doctest::Approx(digest.rows[i].ms[std::size_t(s)]));
  }
}

TEST_CASE("a text that is no digest is refused") {
  for (const auto* text :
       {"", "a digest", "0", "0 1", "0 1\nrelu", "0 1\nrelu 2 1.5",
        "0 1\nrelu 999999999 1", "0 99999999999", "0 1\nrelu 1 x", "0 -1"})
    CHECK(!read_digest(text));
}

} // TEST_SUITE("apps.stragglers.straggler_finder")

// SPDX-License-Identifier: Apache-2.0

// Who is called slow, on made-up times.

#include <troupe/apps/stragglers/straggler_finder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

using namespace troupe::apps;

TEST_SUITE("apps.stragglers.straggler_finder") {

namespace {

constexpr int steps = 10; // of a window
constexpr auto least_windows = straggler_finder::least_windows;

struct slow_op {
  std::string type;   ///< "*": all
  std::string output; ///< "": all of the type
  double factor;
};

/// Times of the ops of ranks, in windows.
struct job {
  explicit job(unsigned seed) : random(seed) {}

  struct op {
    op_key key;
    double ms;
  };
  std::mt19937 random;
  double noise = 0.05;   ///< standard deviation of the logarithm of a time
  double heavy_tail = 0; ///< chance that an op takes ten times as long
  std::vector<op> ops = ops_of_a_net();

  static std::vector<op> ops_of_a_net() {
    std::vector<op> all;
    for (int i = 0; i < 10; ++i) {
      const auto n = std::to_string(i);
      all.push_back({{"conv2d", "conv_" + n}, 1 + 0.1 * i});
      all.push_back({{"conv2d_grad", "conv_grad_" + n}, 2 + 0.1 * i});
      all.push_back({{"relu", "relu_" + n}, 0.2});
    }
    all.push_back({{"pool2d", "pool"}, 1.5});
    all.push_back({{"scale", "short"}, 0.05});
    return all;
  }

  op_digest rank(const std::vector<slow_op>& slow = {}, double drift = 1) {
    op_digest made;
    std::normal_distribution<double> spread{0, noise};
    std::uniform_real_distribution<double> chance{0, 1};
    for (auto& [key, ms] : ops) {
      auto& row = made.rows.emplace_back(op_digest::row{key, {}});
      auto factor = drift;
      for (auto& s : slow)
        if (s.type == "*"
            || (s.type == key.type
                && (s.output.empty() || s.output == key.output)))
          factor *= s.factor;
      for (int i = 0; i < steps; ++i)
        row.ms.push_back(
          static_cast<float>(ms * factor * std::exp(spread(random))
                             * (chance(random) < heavy_tail ? 10 : 1)));
    }
    return made;
  }
};

/// Adds windows until something is named, and returns what was; `windows` says
/// how many those were. Nothing if there are `most`.
std::vector<straggler> first_named(straggler_finder& finder, auto window,
                                   std::size_t& windows,
                                   std::size_t most = least_windows) {
  for (windows = 1; windows <= most; ++windows)
    if (auto found = finder.add(window()); !found.empty())
      return found;
  return {};
}

std::vector<straggler> first_named(straggler_finder& finder, auto window) {
  std::size_t windows = 0;
  return first_named(finder, window, windows);
}

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

TEST_CASE("one op at 1.2 times its time is named in four windows") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    job of{seed};
    straggler_finder finder{2};
    std::size_t windows = 0;
    const auto window = [&] {
      return std::vector{of.rank(), of.rank({{"conv2d", "conv_4", 1.2}})};
    };
    const auto found = first_named(finder, window, windows);
    REQUIRE(found.size() == 1);
    CHECK(windows == least_windows);
    CHECK(found[0].rank == 1);
    CHECK(found[0].type == "conv2d");
    CHECK(found[0].output == "conv_4");
    CHECK(found[0].factor > 1.1);
    CHECK(found[0].factor < 1.3);
    CHECK(finder.add(window()).empty()); // it is named once
  }
}

TEST_CASE("all ops of a type are named as the type") {
  job of{1};
  straggler_finder finder{2};
  const auto found = first_named(finder, [&] {
    return std::vector{of.rank({{"conv2d", "", 1.3}}), of.rank()};
  });
  REQUIRE(found.size() == 1);
  CHECK(found[0].rank == 0);
  CHECK(found[0].type == "conv2d");
  CHECK(found[0].output.empty());
  CHECK(found[0].ms > 1.2 * found[0].others_ms);
}

TEST_CASE("a type that is a little slower does not hide its slow op") {
  job of{1};
  of.noise = 0.02;
  straggler_finder finder{2};
  std::size_t windows = 0;
  const auto found = first_named(
    finder,
    [&] {
      return std::vector{
        of.rank(), of.rank({{"conv2d", "", 1.08}, {"conv2d", "conv_4", 1.08}})};
    },
    windows);
  REQUIRE(found.size() == 1);
  CHECK(found[0].output == "conv_4");
  CHECK(windows == least_windows);
}

TEST_CASE("half of the ops of a type make no slow type") {
  job of{1};
  straggler_finder finder{2};
  const auto found = first_named(finder, [&] {
    std::vector<slow_op> slow;
    for (int i = 0; i < 6; ++i)
      slow.push_back({"conv2d", "conv_" + std::to_string(i), 1.6});
    return std::vector{of.rank(), of.rank(slow)};
  });
  for (auto& each : found)
    CHECK(!each.output.empty());
}

TEST_CASE("an op is named without delay if its type was slow now and then") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    job of{seed};
    straggler_finder finder{2};
    std::size_t windows = 0, w = 0;
    const auto window = [&] {
      const auto of_type = w++ % 2 == 0 ? 1.25 : 1.0;
      return std::vector{of.rank(), of.rank({{"conv2d", "", of_type},
                                             {"conv2d", "conv_4", 100}})};
    };
    const auto found = first_named(finder, window, windows);
    REQUIRE(found.size() == 1);
    CHECK(found[0].output == "conv_4");
    CHECK(windows == least_windows);
  }
}

TEST_CASE("ops of a type that are much slower are no slow rank") {
  job of{1};
  straggler_finder finder{2};
  const auto found = first_named(finder, [&] {
    return std::vector{of.rank(), of.rank({{"relu", "", 5000}})};
  });
  REQUIRE(found.size() == 1);
  CHECK(found[0].type == "relu");
}

TEST_CASE("a straggler that recovers can be named again") {
  job of{1};
  straggler_finder finder{2};
  std::size_t named = 0;
  for (std::size_t w = 0; w < 3 * (least_windows + 1); ++w) {
    const bool is_slow = w / (least_windows + 1) != 1;
    named += finder
               .add({of.rank(),
                     is_slow ? of.rank({{"pool2d", "pool", 1.5}}) : of.rank()})
               .size();
  }
  CHECK(named == 2);
}

TEST_CASE("one window in which a slow op is as fast as others delays its name, "
          "and two hide it") {
  for (const std::size_t fast : {0, 1, 2}) {
    CAPTURE(fast);
    job of{1};
    straggler_finder finder{2};
    const auto slow = [&] {
      return std::vector{of.rank(), of.rank({{"pool2d", "pool", 1.5}})};
    };
    for (int w = 0; w < 3; ++w)
      CHECK(finder.add(slow()).empty());
    for (std::size_t w = 0; w < fast; ++w)
      CHECK(finder.add({of.rank(), of.rank()}).empty());
    std::size_t windows = 0;
    REQUIRE(first_named(finder, slow, windows, 25).size() == 1);
    CHECK(windows
          == (fast == 0   ? 1
              : fast == 1 ? least_windows + 1
                          : straggler_finder::most_windows));
  }
}

TEST_CASE("one slow rank of four is named against the others") {
  job of{3};
  straggler_finder finder{4};
  const auto found = first_named(finder, [&] {
    return std::vector{of.rank(), of.rank(), of.rank({{"pool2d", "pool", 1.4}}),
                       of.rank()};
  });
  REQUIRE(found.size() == 1);
  CHECK(found[0].rank == 2);
  CHECK(found[0].output == "pool");
}

TEST_CASE("a slow core makes a slow rank, not slow ops") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    job of{seed};
    straggler_finder finder{2};
    const auto found = first_named(finder, [&] {
      return std::vector{of.rank(), of.rank({{"*", "", 1.3}})};
    });
    REQUIRE(found.size() == 1);
    CHECK(found[0].rank == 1);
    CHECK(found[0].type.empty());
    CHECK(found[0].factor > 1.2);
    CHECK(found[0].factor < 1.4);
  }
}

TEST_CASE("an op that is slower than its slow rank is named, too") {
  job of{1};
  straggler_finder finder{2};
  const auto found = first_named(finder, [&] {
    return std::vector{of.rank(),
                       of.rank({{"*", "", 1.3}, {"pool2d", "pool", 1.4}})};
  });
  REQUIRE(found.size() == 2);
  CHECK(found[0].type.empty());
  CHECK(found[1].output == "pool");
}

TEST_CASE("a rank that is preempted is not called slow") {
  job of{1};
  straggler_finder finder{2};
  for (std::size_t w = 0; w < 2 * least_windows; ++w) {
    std::vector<op_digest> all{of.rank(), of.rank({{"*", "", 1.3}})};
    all[1].preempted = 0.2f;
    CHECK(finder.add(all).empty());
  }
}

TEST_CASE("a type that is a little slower is not named while its rank is "
          "preempted") {
  job of{1};
  const auto window = [&](double factor, float preempted) {
    std::vector<op_digest> all{of.rank(), of.rank({{"conv2d", "", factor}})};
    all[1].preempted = preempted;
    return all;
  };
  straggler_finder little{2}, much{2};
  for (std::size_t w = 1; w < 2 * least_windows; ++w) {
    CHECK(little.add(window(1.3, 0.2f)).empty());
    CHECK(much.add(window(2, 0.2f)).size() == (w == least_windows));
  }
  const auto found = little.add(window(1.3, 0.1f));
  REQUIRE(found.size() == 1);
  CHECK(found[0].type == "conv2d");
  CHECK(found[0].output.empty());
}

TEST_CASE("an op that is a little slower is not named while its rank is "
          "preempted") {
  job of{1};
  straggler_finder finder{2};
  const auto window = [&](float preempted) {
    std::vector<op_digest> all{of.rank(), of.rank({{"conv2d", "conv_4", 1.3}})};
    all[1].preempted = preempted;
    return all;
  };
  for (std::size_t w = 0; w < 2 * least_windows; ++w)
    CHECK(finder.add(window(0.2f)).empty());
  const auto found = finder.add(window(0.1f));
  REQUIRE(found.size() == 1);
  CHECK(found[0].output == "conv_4");
}

TEST_CASE("a short op is not named while its rank is preempted, however slow") {
  for (const bool is_preempted : {false, true}) {
    job of{8};
    of.ops.resize(6);
    straggler_finder finder{2};
    const auto found = first_named(finder, [&] {
      std::vector all{of.rank(), of.rank({{"relu", "relu_1", 1.9}})};
      all[1].preempted = is_preempted ? 0.3 : 0;
      return all;
    });
    CHECK(found.size() == (is_preempted ? 0 : 1)); // 0.38 against 0.2 ms
  }
}

TEST_CASE("a window that disagrees does not count as how the op varies before "
          "the row has ended") {
  job of{1};
  straggler_finder finder{2};
  const auto window = [&] {
    return std::vector{of.rank(), of.rank({{"conv2d", "conv_4", 1.2}})};
  };
  CHECK(finder.add(window()).empty());
  auto disturbed = window(); // rank 0, in more than half of its runs
  for (auto& row : disturbed[0].rows)
    if (row.op.output == "conv_4")
      for (std::size_t i = 4; i < row.ms.size(); ++i)
        row.ms[i] *= 2;
  CHECK(finder.add(disturbed).empty());
  CHECK(finder.add(window()).empty());
  CHECK(finder.add(window()).empty());
  const auto found = finder.add(window());
  REQUIRE(found.size() == 1);
  CHECK(found[0].output == "conv_4");
}

TEST_CASE("a window that was disturbed before the op was seen to be slow does "
          "not count as how the op varies") {
  job of{1};
  straggler_finder finder{2};
  const auto window = [&] {
    return std::vector{of.rank(), of.rank({{"conv2d", "conv_4", 1.2}})};
  };
  auto disturbed = window();
  for (auto& row : disturbed[0].rows)
    for (std::size_t i = 4; i < row.ms.size(); ++i)
      row.ms[i] *= 2;
  CHECK(finder.add(disturbed).empty());
  std::size_t windows = 0;
  const auto found = first_named(finder, window, windows);
  REQUIRE(found.size() == 1);
  CHECK(found[0].output == "conv_4");
  CHECK(windows == least_windows);
}

TEST_CASE("a burst of load that makes some runs longer does not hide a slow "
          "op") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    job of{seed};
    of.noise = 0.03;
    straggler_finder finder{2};
    std::size_t windows = 0;
    const auto found = first_named(
      finder,
      [&] {
        std::vector all{of.rank(), of.rank({{"conv2d", "conv_4", 1.2}})};
        for (auto& row : all[0].rows)
          for (std::size_t i = 0; i < 3; ++i)
            row.ms[i] *= 1.5f;
        return all;
      },
      windows);
    REQUIRE(found.size() == 1);
    CHECK(found[0].output == "conv_4");
    CHECK(windows == least_windows);
  }
}

TEST_CASE("an op that is fast now and then is not slow") {
  job of{1};
  of.noise = 0.02;
  straggler_finder finder{2};
  for (std::size_t w = 0; w < 2 * least_windows; ++w) {
    std::vector all{of.rank(), of.rank({{"conv2d", "conv_4", 1.25}})};
    if (w % 3 == 1) // it competes with an op of the other rank, but not here
      for (auto& row : all[1].rows)
        if (row.op.output == "conv_4")
          row.ms.front() /= 1.25f;
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

TEST_CASE("an op whose time varies more than it is slower is not named") {
  job of{1};
  of.noise = 0.5;
  straggler_finder finder{2};
  for (int w = 0; w < 30; ++w)
    CHECK(finder.add({of.rank(), of.rank({{"pool2d", "pool", 1.3}})}).empty());
}

TEST_CASE("an op that is slow again and again for some windows is hardly ever "
          "named") {
  std::size_t named = 0, long_rows = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    job of{seed};
    straggler_finder finder{2};
    std::uniform_int_distribution<std::size_t> windows{1, 10}, rank{0, 1};
    const auto add_row = [&](std::size_t length) {
      const auto slow = rank(of.random);
      for (std::size_t w = 0; w < length; ++w) {
        std::vector<op_digest> all{of.rank(), of.rank()};
        all[slow] = of.rank({{"pool2d", "pool", 1.25}});
        named += finder.add(all).size();
      }
      for (std::size_t w = 0; w < 3; ++w)
        named += finder.add({of.rank(), of.rank()}).size();
    };
    for (int row = 0; row < 10; ++row) // shows how the op varies
      add_row(least_windows - 1);
    for (int row = 0; row < 30; ++row) {
      const auto length = windows(of.random);
      long_rows += length >= least_windows;
      add_row(length);
    }
  }
  CHECK(long_rows > 300);
  CHECK(named * 50 < long_rows);
}

TEST_CASE("an op that varies is named if it stays slow, or is much slower") {
  for (const double factor : {1.25, 5.0}) {
    job of{1};
    straggler_finder finder{2};
    const auto slow = [&](double by) {
      return std::vector{of.rank(), of.rank({{"pool2d", "pool", by}})};
    };
    for (int w = 0; w < 32; ++w)
      CHECK(finder.add(slow(w % 4 == 0 ? 1.25 : 1)).empty());
    std::size_t windows = 0;
    REQUIRE(first_named(
              finder, [&] { return slow(factor); }, windows, 40)
              .size()
            == 1);
    CHECK(windows
          == (factor > 2 ? least_windows : straggler_finder::most_windows));
  }
}

TEST_CASE("how an op varied long ago is forgotten") {
  job of{1};
  straggler_finder finder{2};
  const auto slow = [&] {
    return std::vector{of.rank(), of.rank({{"pool2d", "pool", 1.5}})};
  };
  CHECK(finder.add(slow()).empty());
  for (int w = 0; w < 100; ++w)
    CHECK(finder.add({of.rank(), of.rank()}).empty());
  std::size_t windows = 0;
  REQUIRE(first_named(finder, slow, windows, 20).size() == 1);
  CHECK(windows == least_windows);
}

TEST_CASE("a rank that is slow for long says nothing of how the other varies") {
  job of{1};
  straggler_finder finder{2};
  for (int w = 0; w < 60; ++w)
    finder.add({of.rank({{"pool2d", "pool", 3}}), of.rank()});
  std::size_t windows = 0;
  const auto found = first_named(
    finder,
    [&] {
      return std::vector{of.rank(), of.rank({{"pool2d", "pool", 1.2}})};
    },
    windows);
  REQUIRE(found.size() == 1);
  CHECK(found[0].rank == 1);
}

TEST_CASE("an op that takes hardly any time, or that a rank lacks, is left "
          "out") {
  job of{1};
  straggler_finder finder{2};
  for (std::size_t w = 0; w < 2 * least_windows; ++w) {
    auto other = of.rank({{"scale", "short", 1.8}});
    other.rows.push_back(
      {{"recv", "only_here"}, std::vector<float>(steps, 9.0f)});
    CHECK(finder.add({of.rank(), other}).empty());
  }
}

TEST_CASE("an op of which few runs are known is left out") {
  job of{1};
  straggler_finder finder{2};
  for (std::size_t w = 0; w < 2 * least_windows; ++w) {
    auto slow = of.rank({{"pool2d", "pool", 3}});
    for (auto& row : slow.rows)
      if (row.op.type == "pool2d")
        row.ms.resize(4);
    CHECK(finder.add({of.rank(), slow}).empty());
  }
}

TEST_CASE("a line names rank, op, factor and times") {
  CHECK(
    text_of({1, "conv2d", "conv_3", 1.195, 1.57, 1.31, 10}, 2, "conv2d#4@cpu:1")
    == "rank 1 is slow: conv2d#4@cpu:1 takes 1.20 times as long as on rank "
       "0 (1.57 against 1.31 ms, lower quartiles of 10 runs)");
  CHECK(text_of({1, "conv2d", "", 1.195, 14.1, 11.8, 10}, 2, "")
        == "rank 1 is slow: ops of type conv2d take 1.20 times as long as on "
           "rank 0 (14.10 against 11.80 ms, lower quartiles of 10 runs)");
  CHECK(text_of({3, "", "", 1.3, 130, 100, 10}, 4, "")
        == "rank 3 is slow: all ops take 1.30 times as long as on the others "
           "(130.00 against 100.00 ms, lower quartiles of 10 runs)");
  CHECK(text_of({1, "relu", "", 5909.1, 20.09, 0.0034, 10}, 2, "")
        == "rank 1 is slow: ops of type relu take 5909 times as long as on "
           "rank 0 (20.09 ms against 3.4 us, lower quartiles of 10 runs)");
}

} // TEST_SUITE("apps.stragglers.straggler_finder")

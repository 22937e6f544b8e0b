// SPDX-License-Identifier: Apache-2.0
// Small programs that tests/paddle/make_cases.py trained in Paddle's executor,
// trained here on one device and on several: losses, other values of each step
// and the parameters at the end are Paddle's.

#include <troupe/actors/executor.hpp>
#include <troupe/graph/paddle/program_file.hpp>
#include <troupe/kernels/io/npz.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

namespace troupe {

TEST_SUITE("paddle.run_cases") {

namespace {

namespace fs = std::filesystem;

/// Part of an array's name behind "prefix:"; empty if it has another prefix.
std::string behind(const std::string& name, const std::string& prefix) {
  return name.starts_with(prefix + ":") ? name.substr(prefix.size() + 1) : "";
}

struct way {
  const char* devices;
  const char* strategy;
};

constexpr way ways[] = {{"cpu:1", "all_reduce"}, {"cpu:2", "all_reduce"},
                        {"cpu:2", "reduce"},     {"cpu:4", "all_reduce"},
                        {"cpu:4", "reduce"},     {"cpu:2", "replicate"}};

/// Samples of the parts of a batch whose gradients are accumulated; empty: the
/// batch is not divided.
using parts = std::vector<std::int64_t>;

/// One archive.
class run_case {
public:
  explicit run_case(const fs::path& path) : arrays_(read_npz(path, memory_)) {
    const auto bytes = arrays_.at("program").values<std::uint8_t>();
    program_ = graph::parse_program(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
      path.string());
    tolerance_ = arrays_.at("tolerance").values<double>()[0];
  }

  void check(const way& w, const parts& of_batch = {}) {
    auto o = options(w);
    if (!of_batch.empty())
      o.accumulate = static_cast<std::uint32_t>(of_batch.size());
    executor exe{program_, o};
    const auto losses = arrays_.at("loss").values<double>();
    const auto fetches = all_behind("fetch");
    for (std::size_t step = 0; step < losses.size(); ++step) {
      CAPTURE(step);
      const auto result = of_batch.empty()
                            ? exe.run(feeds(step), fetches)
                            : run_parts(exe, feeds(step), of_batch, fetches);
      const auto wanted = doctest::Approx(losses[step]).epsilon(tolerance_);
      // No infinite number is near another.
      CHECK((result.loss == losses[step] || result.loss == wanted));
      for (const auto& name : fetches)
        check_fetch(name, at_step("fetch:" + name, step),
                    result.fetched.at(name));
    }
    exe.synchronize_parameters();
    for (const auto& name : all_behind("out"))
      check_value(name, arrays_.at("out:" + name),
                  exe.parameters().var(name).as_tensor());
  }

  /// Losses where every other batch has its first samples alone.
  std::vector<double> losses_of_uneven(const way& w, std::int64_t samples) {
    executor exe{program_, options(w)};
    std::vector<double> losses;
    for (std::int64_t step = 0; step < arrays_.at("loss").numel(); ++step) {
      auto fed = feeds(static_cast<std::size_t>(step));
      for (auto& [name, value] : fed)
        if (step % 2 == 0)
          value = value.rows(0, samples);
      losses.push_back(exe.run(fed, {}).loss);
    }
    return losses;
  }

private:
  /// The result of the last part, with the loss of the whole batch.
  static step_result run_parts(executor& exe, const feed_map& batch,
                               const parts& of_batch,
                               const std::vector<std::string>& fetches) {
    const auto samples =
      std::accumulate(of_batch.begin(), of_batch.end(), std::int64_t{0});
    step_result last;
    std::int64_t first = 0;
    double loss = 0;
    for (auto count : of_batch) {
      auto fed = batch;
      for (auto& [name, value] : fed)
        if (value.num_samples() == samples) // else it is no feed of samples
          value = value.rows(first, count);
      first += count;
      last = exe.run(fed, fetches);
      CHECK(last.updates == (first == samples));
      loss +=
        last.loss * static_cast<double>(count) / static_cast<double>(samples);
    }
    last.loss = loss;
    return last;
  }

  executor_options options(const way& w) {
    executor_options o;
    o.devices = parse_devices(w.devices);
    o.strategy = graph::parse_merge_strategy(w.strategy);
    o.fetches = all_behind("fetch");
    o.parameters = std::make_shared<scope>();
    for (const auto& name : all_behind("in"))
      o.parameters->var(name).set(clone(arrays_.at("in:" + name), memory_));
    return o;
  }

  std::vector<std::string> all_behind(const std::string& prefix) const {
    std::vector<std::string> names;
    for (const auto& [name, array] : arrays_)
      if (auto rest = behind(name, prefix); !rest.empty())
        names.push_back(std::move(rest));
    return names;
  }

  tensor at_step(const std::string& name, std::size_t step) const {
    const tensor& all = arrays_.at(name);
    return all.rows(static_cast<std::int64_t>(step), 1)
      .reshaped(shape(all.dims().dims().subspan(1)));
  }

  feed_map feeds(std::size_t step) const {
    feed_map fed;
    for (const auto& name : all_behind("feed"))
      fed.emplace(name, at_step("feed:" + name, step));
    return fed;
  }

  /// Every device has the value: none of them belongs to samples.
  void check_fetch(const std::string& name, const tensor& expected,
                   const std::vector<tensor>& by_device) {
    for (const tensor& actual : by_device)
      check_value(name, expected, actual);
  }

  void check_value(const std::string& name, const tensor& expected,
                   const tensor& actual) {
    CAPTURE(name);
    REQUIRE(to_string(actual.dims()) == to_string(expected.dims()));
    const auto a = cast(actual, dtype::float64, memory_);
    const auto e = cast(expected, dtype::float64, memory_);
    double difference = 0;
    double magnitude = 1e-3;
    for (std::int64_t i = 0; i < e.numel(); ++i) {
      const double x = e.data<double>()[i];
      difference = std::max(difference, std::abs(a.data<double>()[i] - x));
      magnitude = std::max(magnitude, std::abs(x));
    }
    CHECK(difference <= tolerance_ * magnitude);
  }

  arena memory_{make_host_memory_source()};
  named_tensors arrays_;
  graph::program program_;
  double tolerance_ = 0;
};

/// Whether the program itself accumulates gradients.
bool is_merged(const fs::path& path) {
  return path.stem().string().starts_with("merged_");
}

/// Checks all programs of a family; one that throws fails alone.
void check_family(const std::string& family, const parts& of_batch = {}) {
  std::vector<fs::path> cases;
  for (auto& entry : fs::directory_iterator(fs::path{TROUPE_TEST_DATA}
                                            / "paddle_runs" / family))
    cases.push_back(entry.path());
  std::ranges::sort(cases);
  REQUIRE_FALSE(cases.empty());
  for (auto& path : cases)
    for (const auto& w : ways) {
      if (!of_batch.empty() && is_merged(path))
        continue;
      INFO(path.stem().string(), " on ", std::string{w.devices}, ", ",
           std::string{w.strategy});
      try {
        run_case{path}.check(w, of_batch);
      } catch (const error& e) {
        FAIL_CHECK(std::string{e.what()});
      }
    }
}

/// Checks a program with batches that leave devices without samples.
void check_uneven(const std::string& name) {
  run_case c{fs::path{TROUPE_TEST_DATA} / "paddle_runs" / "updates"
             / (name + ".npz")};
  for (const std::int64_t samples : {1, 3}) {
    const auto expected = c.losses_of_uneven(ways[0], samples);
    for (const auto& w : ways) {
      CAPTURE(w.devices);
      CAPTURE(w.strategy);
      const auto losses = c.losses_of_uneven(w, samples);
      REQUIRE(losses.size() == expected.size());
      for (std::size_t step = 0; step < losses.size(); ++step)
        CHECK(losses[step] == doctest::Approx(expected[step]).epsilon(1e-5));
    }
  }
}

} // namespace

TEST_CASE("clipped gradients train as in Paddle under every strategy") {
  check_family("clipping");
}

TEST_CASE("learning-rate schedules of programs follow Paddle's") {
  check_family("schedules");
}

TEST_CASE("devices without samples merge gradients over steps and count "
          "updates, too") {
  for (const std::string name : {"merged_adam", "looking_ahead", "averaged"}) {
    CAPTURE(name);
    check_uneven(name);
  }
}

TEST_CASE("merged gradients and scaled losses train as in Paddle") {
  check_family("updates");
}

TEST_CASE("batches in parts whose gradients are accumulated train as in "
          "Paddle") {
  for (auto family : {"clipping", "schedules", "updates"})
    for (const auto& of_batch : {parts{4, 4}, parts{2, 5, 1}})
      check_family(family, of_batch);
}

TEST_CASE("a program that accumulates gradients itself is refused if the "
          "executor is to do so") {
  const auto updates = fs::path{TROUPE_TEST_DATA} / "paddle_runs" / "updates";
  CHECK_THROWS_WITH_AS(
    run_case{updates / "merged_adam.npz"}.check(ways[0], {4, 4}),
    doctest::Contains("the program accumulates gradients itself "
                      "(GradientMergeOptimizer), so the executor cannot"),
    error);
}

} // TEST_SUITE("paddle.run_cases")

} // namespace troupe

// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/inference/merged_batch.hpp>

#include <support/caught.hpp>
#include <training/inference/small_programs.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace troupe;
using namespace troupe::test;
using namespace troupe::inference;

TEST_SUITE("training.merged_batch") {

namespace {

/// Rows of one number each, in sequences of these lengths.
feed_map sequences(const std::vector<std::uint64_t>& offsets,
                   const std::vector<float>& values) {
  auto feeds = numbers(values);
  auto& x = feeds.at("x");
  x.set_levels(make_lod({offsets}, x.dims()[0]));
  return feeds;
}

struct parts_of_a_batch {
  arena memory{make_host_memory_source()};

  tensor merged(const std::vector<feed_map>& parts) {
    std::vector<const feed_map*> pointers;
    for (auto& p : parts)
      pointers.push_back(&p);
    return merged_feeds(pointers, memory).at("x");
  }
};

step_result result_of(std::vector<tensor> by_device) {
  step_result made;
  made.fetched["y"] = std::move(by_device);
  return made;
}

} // namespace

TEST_CASE_FIXTURE(parts_of_a_batch, "parts are joined and cut again") {
  const auto whole = merged({numbers({1, 2}), numbers({3}), numbers({4, 5})});
  CHECK(whole.dims() == shape{5, 1});
  const std::vector<std::int64_t> samples{2, 1, 2};
  const auto cut = split_outputs(samples, result_of({whole}), {"y"});
  REQUIRE(cut.size() == 3);
  CHECK(values_in(cut[0].at("y")) == std::vector<float>{1, 2});
  CHECK(values_in(cut[1].at("y")) == std::vector<float>{3});
  CHECK(values_in(cut[2].at("y")) == std::vector<float>{4, 5});
}

TEST_CASE_FIXTURE(parts_of_a_batch, "a sequence is a sample") {
  const auto whole =
    merged({sequences({0, 2, 3}, {1, 2, 3}), sequences({0, 1}, {4})});
  REQUIRE(whole.levels());
  CHECK(*whole.levels() == lod{{0, 2, 3, 4}});
  const std::vector<std::int64_t> samples{2, 1};
  const auto cut = split_outputs(samples, result_of({whole}), {"y"});
  CHECK(values_in(cut[0].at("y")) == std::vector<float>{1, 2, 3});
  CHECK(values_in(cut[1].at("y")) == std::vector<float>{4});
  CHECK(*cut[1].at("y").levels() == lod{{0, 1}});
}

TEST_CASE_FIXTURE(parts_of_a_batch, "the values of several devices are one") {
  const auto first = numbers({1, 2}).at("x"), second = numbers({3}).at("x");
  const std::vector<std::int64_t> samples{1, 2};
  const auto cut = split_outputs(samples, result_of({first, second}), {"y"});
  CHECK(values_in(cut[1].at("y")) == std::vector<float>{2, 3});
}

TEST_CASE_FIXTURE(parts_of_a_batch, "only feeds of equal form can be merged") {
  const auto x = [](const shape& dims) {
    return fed<float>(
      "x", dims, std::vector<float>(static_cast<std::size_t>(dims.numel())));
  };
  CHECK(can_merge(x({1, 3}), x({7, 3})));
  CHECK_FALSE(can_merge(x({1, 3}), x({1, 4})));
  CHECK_FALSE(can_merge(x({1, 3}), x({1, 3, 1})));
  CHECK_FALSE(can_merge(numbers({1}), sequences({0, 1}, {1})));
}

TEST_CASE("an output without a row per sample is named") {
  const auto result = result_of({numbers({1, 2, 3}).at("x")});
  require_samples(result, {"y"}, 3);
  const auto why = caught([&] { require_samples(result, {"y"}, 2); });
  CHECK(why.code() == errc::shape_mismatch);
  CHECK(why.where().variable == "y");
  CHECK(says(why, "[3, 1] for a batch of 2 samples"));
}

} // TEST_SUITE("training.merged_batch")

// SPDX-License-Identifier: Apache-2.0
#include <support/caught.hpp>
#include <support/files.hpp>
#include <troupe/kernels/io/npz.hpp>
#include <troupe/training/data/batch_source.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("training.batch_source") {

namespace {

struct host {
  arena memory{make_host_memory_source()};

  tensor counting(const shape& dims) {
    tensor out = tensor::make(memory, dims, dtype::int64);
    std::iota(out.values<std::int64_t>().begin(),
              out.values<std::int64_t>().end(), 0);
    return out;
  }
  tensor offsets(const shape& dims, const std::vector<std::int64_t>& list) {
    tensor out = tensor::make(memory, dims, dtype::int64);
    std::ranges::copy(list, out.data<std::int64_t>());
    return out;
  }
  dataset samples(std::int64_t n) {
    return {{{"x", counting({n, 1})}, {"y", counting({n, 2})}}, n};
  }
};

std::vector<std::int64_t> values(const feed_map& feeds, const char* name) {
  const auto all = feeds.find(name)->second.values<std::int64_t>();
  return {all.begin(), all.end()};
}

std::vector<std::int64_t> epoch_of(batch_source& source, std::uint64_t epoch) {
  std::vector<std::int64_t> all;
  for (std::uint64_t i = 0; i < source.steps_per_epoch(); ++i) {
    const auto part = values(source.batch(epoch, i), "x");
    CHECK(static_cast<std::int64_t>(part.size()) == source.batch_samples(i));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

const feed_info ids{"ids", dtype::int64, {-1, 2}, 5};
const feed_info image{"image", dtype::float32, {-1, 3}, std::nullopt};

} // namespace

TEST_CASE_FIXTURE(host, "an epoch holds each sample once, the last batch "
                        "what is left") {
  auto source = make_dataset_source(samples(7), {.batch = 3}, memory);
  CHECK(source->steps_per_epoch() == 3);
  CHECK(source->batch_samples(2) == 1);
  auto all = epoch_of(*source, 0);
  std::ranges::sort(all);
  CHECK(all == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE_FIXTURE(host, "columns of a sample stay together") {
  auto source = make_dataset_source(samples(7), {.batch = 7}, memory);
  const feed_map feeds = source->batch(0, 0);
  const auto x = values(feeds, "x"), y = values(feeds, "y");
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK(y[2 * i] == 2 * x[i]);
}

TEST_CASE_FIXTURE(host, "orders differ from epoch to epoch and seed to seed, "
                        "and come back") {
  auto a = make_dataset_source(samples(50), {.batch = 8, .seed = 1}, memory);
  auto b = make_dataset_source(samples(50), {.batch = 8, .seed = 2}, memory);
  const auto first = epoch_of(*a, 0), second = epoch_of(*a, 1);
  CHECK(first != second);
  CHECK(first != epoch_of(*b, 0));
  CHECK(first == epoch_of(*a, 0));
}

// bench/peers/sample_order.py must give the same order; compare_text_test.py
// tests that.
TEST_CASE_FIXTURE(host, "the order of a seed is the same everywhere") {
  auto source =
    make_dataset_source(samples(10), {.batch = 4, .seed = 7}, memory);
  CHECK(epoch_of(*source, 0)
        == std::vector<std::int64_t>{4, 5, 6, 2, 0, 7, 9, 1, 8, 3});
  CHECK(epoch_of(*source, 1)
        == std::vector<std::int64_t>{3, 0, 1, 9, 4, 7, 8, 2, 6, 5});
}

TEST_CASE_FIXTURE(host, "without shuffling samples keep their order") {
  auto source =
    make_dataset_source(samples(4), {.batch = 4, .shuffle = false}, memory);
  CHECK(epoch_of(*source, 3) == std::vector<std::int64_t>{0, 1, 2, 3});
}

TEST_CASE_FIXTURE(host, "a batch below one is refused") {
  CHECK(caught([&] {
          make_dataset_source(samples(4), {.batch = 0}, memory);
        }).code()
        == errc::invalid_argument);
  CHECK(caught([&] { make_synthetic_source({}, -1, 0, memory); }).code()
        == errc::invalid_argument);
}

TEST_CASE_FIXTURE(host, "synthetic ids lie below their limit and reach it") {
  auto source = make_synthetic_source({{ids, image}}, 50, 3, memory);
  const feed_map feeds = source->batch(0, 0);
  const auto drawn = values(feeds, "ids");
  CHECK(std::ranges::min(drawn) == 0);
  CHECK(std::ranges::max(drawn) == 4);
  CHECK(feeds.find("image")->second.dims() == shape{50, 3});
  CHECK(values(source->batch(1, 0), "ids") == drawn);
  CHECK(values(source->batch(0, 1), "ids") != drawn);
}

TEST_CASE_FIXTURE(host, "synthetic whole numbers need a limit") {
  feed_info open = ids;
  open.below.reset();
  const error failure =
    caught([&] { make_synthetic_source({{open}}, 2, 0, memory); });
  CHECK(says(failure, "ids int64 [-1, 2]"));
  CHECK(says(failure, "program.json"));
}

TEST_CASE_FIXTURE(host, "an npz file gives a batch per step") {
  const temporary_folder folder;
  const auto file = folder / "f.npz";
  tensor array = tensor::make(memory, {2, 1, 2}, dtype::int64);
  std::iota(array.values<std::int64_t>().begin(),
            array.values<std::int64_t>().end(), 1);
  write_npz(file, {{"ids", array}});
  auto source = make_npz_source(file, {{ids}}, memory);
  CHECK(source->steps_per_epoch() == 2);
  CHECK(source->batch_samples(0) == 1);
  CHECK(values(source->batch(0, 1), "ids") == std::vector<std::int64_t>{3, 4});
}

TEST_CASE_FIXTURE(host, "sequences of a step are cut out of an npz file") {
  const temporary_folder folder;
  const auto file = folder / "f.npz";
  const feed_info words{"x", dtype::int64, {-1, 1}, std::nullopt};
  const named_tensors right{{"x", counting({6, 1})},
                            {"x.lod0", offsets({2, 3}, {0, 1, 2, 0, 0, 1})},
                            {"x.lod1", offsets({5}, {0, 1, 4, 0, 2})}};
  write_npz(file, right);
  auto source = make_npz_source(file, {{words}}, memory);
  CHECK(source->steps_per_epoch() == 2);
  CHECK(source->batch_samples(0) == 2);
  CHECK(values(source->batch(0, 1), "x") == std::vector<std::int64_t>{4, 5});
  CHECK(*source->batch(0, 0).at("x").levels() == lod{{0, 1, 2}, {0, 1, 4}});
  CHECK(*source->batch(0, 1).at("x").levels() == lod{{0, 0, 1}, {0, 2}});

  const auto refusal = [&](const char* name, const tensor& level) {
    auto arrays = right;
    arrays.insert_or_assign(name, level);
    write_npz(file, arrays);
    return error_of([&] { make_npz_source(file, {{words}}, memory); });
  };
  CHECK(contains(refusal("x.lod1", offsets({5}, {0, 1, 4, 0, 3})),
                 "has 6 rows, its sequences have 7"));
  CHECK(contains(refusal("x.lod1", offsets({4}, {0, 1, 4, 0})),
                 "too few offsets in lod1"));
  CHECK(contains(refusal("x.lod1", offsets({6}, {0, 1, 4, 0, 2, 9})),
                 "offsets left over in lod1"));
  CHECK(contains(refusal("x.lod0", offsets({2, 3}, {0, 1, 2, 1, 0, 1})),
                 "do not begin with 0"));
  CHECK(contains(refusal("x.lod0", offsets({2, 3}, {0, 1, -2, 0, 0, 1})),
                 "negative offset in lod0"));
  CHECK(contains(refusal("x.lod0", offsets({2, 3}, {0, 1, INT64_MAX, 0, 0, 1})),
                 "offset in lod0 that is too large: 9223372036854775807"));
  CHECK(contains(refusal("x.lod0", offsets({6}, {0, 1, 2, 0, 0, 1})),
                 "[steps, samples + 1]"));

  // The sum of all rows is 6 modulo 2^64.
  constexpr std::int64_t many = (std::int64_t{1} << 62) - 1;
  const std::vector<std::int64_t> steps{0, many, 0, many, 0, many,
                                        0, many, 0, 4,    0, 6};
  write_npz(file,
            {{"x", counting({6, 1})}, {"x.lod0", offsets({6, 2}, steps)}});
  CHECK(contains(error_of([&] { make_npz_source(file, {{words}}, memory); }),
                 "has 6 rows, its sequences have 4611686018427387903"));
}

TEST_CASE_FIXTURE(host, "an npz file may set persistable variables") {
  const temporary_folder folder;
  const auto file = folder / "f.npz";
  const feed_info rate{"rate", dtype::float32, {1}, std::nullopt, true};
  tensor rates = tensor::make(memory, {2, 1}, dtype::float32);
  rates.data<float>()[0] = 0.5f;
  rates.data<float>()[1] = 0.25f;
  write_npz(file, {{"ids", counting({2, 1, 2})}, {"rate", rates}});
  auto source = make_npz_source(file, {{ids, rate}}, memory);
  const auto feeds = source->batch(0, 1);
  CHECK(feeds.find("rate")->second.dims() == shape{1});
  CHECK(feeds.find("rate")->second.values<float>()[0] == 0.25f);
  write_npz(file, {{"ids", counting({2, 1, 2})}});
  CHECK(make_npz_source(file, {{ids, rate}}, memory)->batch(0, 0).size() == 1);
}

TEST_CASE_FIXTURE(host, "a feed that is no batch has a value per step") {
  const temporary_folder folder;
  const auto file = folder / "f.npz";
  feed_info heat{"heat", dtype::int64, {1}, 2};
  heat.whole = true;
  write_npz(file, {{"ids", counting({2, 1, 2})}, {"heat", counting({2, 1})}});
  auto source = make_npz_source(file, {{heat, ids}}, memory);
  CHECK(source->batch_samples(0) == 1);
  CHECK(source->batch(0, 1).at("heat").dims() == shape{1});
  CHECK(values(source->batch(0, 1), "heat") == std::vector<std::int64_t>{1});
  write_npz(file, {{"ids", counting({2, 1, 2})}, {"heat", counting({2, 2})}});
  CHECK(contains(error_of([&] {
                   make_npz_source(file, {{heat, ids}}, memory);
                 }),
                 "cannot be int64 [2]"));
  auto drawn = make_synthetic_source({{heat, ids}}, 4, 0, memory);
  CHECK(drawn->batch(0, 0).at("heat").dims() == shape{1});
}

TEST_CASE_FIXTURE(host, "a label that the loss ignores is no wrong one") {
  const temporary_folder folder;
  const auto file = folder / "f.npz";
  auto label = tensor::make(memory, {1, 1, 2}, dtype::int64);
  feed_info feed = ids;
  const auto refusal = [&](std::int64_t ignored, std::int64_t fed) {
    feed.ignored = ignored;
    std::ranges::fill(label.values<std::int64_t>(), fed);
    write_npz(file, {{"ids", label}});
    return error_of([&] { make_npz_source(file, {{feed}}, memory); });
  };
  CHECK(refusal(-100, -100) == "none");
  CHECK(refusal(255, 255) == "none");
  CHECK(contains(refusal(255, -100), "is -100, outside [0, 5)"));
}

TEST_CASE_FIXTURE(host, "an npz file that does not fit is refused by name") {
  const temporary_folder folder;
  const auto file = folder / "f.npz";
  const auto refusal = [&](const named_tensors& arrays,
                           std::vector<feed_info> feeds) {
    write_npz(file, arrays);
    return error_of([&] { make_npz_source(file, feeds, memory); });
  };
  const tensor right = counting({2, 1, 2});
  CHECK(contains(refusal({{"other", right}}, {ids}), "no array for feed ids"));
  CHECK(contains(refusal({{"ids", right}, {"more", right}}, {ids}),
                 "no feed 'more'"));
  CHECK(contains(refusal({{"ids", counting({2, 1, 3})}}, {ids}),
                 "cannot be int64 [1, 3]"));
  CHECK(contains(
    refusal({{"ids", tensor::make(memory, {2, 1, 2}, dtype::int32)}}, {ids}),
    "dtype_mismatch"));
  CHECK(contains(refusal({{"ids", counting({2, 2, 2})}}, {ids}),
                 "ids [1, 0, 1] is 5, outside [0, 5)"));
  CHECK(contains(refusal({{"ids", counting({4})}}, {ids}),
                 "no leading axis of steps"));
  CHECK(contains(
    refusal({{"ids", right},
             {"image", tensor::make(memory, {3, 1, 3}, dtype::float32)}},
            {ids, image}),
    "3 steps"));
}
TEST_CASE_FIXTURE(host, "the shares of a dataset's batches add up to them") {
  const sampling whole{.batch = 5, .seed = 3};
  auto all = make_dataset_source(samples(13), whole, memory);
  for (std::int64_t ranks : {1, 2, 3, 7}) {
    std::vector<std::unique_ptr<batch_source>> parts;
    for (std::int64_t r = 0; r < ranks; ++r) {
      auto own = whole;
      own.share = {2 * r, 2, 2 * ranks}; // two devices per rank
      parts.push_back(make_dataset_source(samples(13), own, memory));
    }
    for (std::uint64_t epoch : {0u, 1u})
      for (std::uint64_t i = 0; i < all->steps_per_epoch(); ++i) {
        std::vector<std::int64_t> joined;
        for (auto& part : parts) {
          CHECK(part->batch_samples(i) == all->batch_samples(i));
          const auto feeds = part->batch(epoch, i);
          if (feeds.empty())
            continue; // no samples for this rank
          const auto own = values(feeds, "y");
          joined.insert(joined.end(), own.begin(), own.end());
        }
        CHECK(joined == values(all->batch(epoch, i), "y"));
      }
  }
}

TEST_CASE_FIXTURE(host, "shards of a share differ by at most one sample") {
  const batch_share second{.first_device = 1, .devices = 2, .all_devices = 4};
  CHECK(second.of(8).first == 2);
  CHECK(second.of(8).count == 4);
  CHECK(second.of(5).first == 2); // 2, 1, 1, 1
  CHECK(second.of(5).count == 2);
  CHECK(second.of(1).count == 0);
  CHECK(batch_share{}.of(9).count == 9);
}

TEST_CASE_FIXTURE(host, "a share of an npz file has sequences of its samples") {
  const temporary_folder folder;
  const auto file = folder / "f.npz";
  const feed_info words{"x", dtype::int64, {-1, 1}, std::nullopt};
  write_npz(file, {{"x", counting({6, 1})},
                   {"x.lod0", offsets({2, 3}, {0, 1, 4, 0, 2, 2})}});
  auto second = make_npz_source(file, {{words}}, memory, {1, 1, 2});
  CHECK(second->batch_samples(0) == 2);
  CHECK(values(second->batch(0, 0), "x") == std::vector<std::int64_t>{1, 2, 3});
  CHECK(*second->batch(0, 0).at("x").levels() == lod{{0, 3}});
  CHECK(values(second->batch(0, 1), "x").empty());
  CHECK(*second->batch(0, 1).at("x").levels() == lod{{0, 0}});
}

TEST_CASE_FIXTURE(host,
                  "a share without samples has the feeds that are whole") {
  const temporary_folder folder;
  const auto file = folder / "f.npz";
  feed_info rate{"rate", dtype::int64, {1}, std::nullopt};
  rate.persistable = true;
  write_npz(file, {{"ids", counting({2, 1, 2})}, {"rate", counting({2, 1})}});
  auto idle = make_npz_source(file, {{ids, rate}}, memory, {1, 1, 2});
  const auto feeds = idle->batch(0, 0);
  CHECK(feeds.size() == 1);
  CHECK(feeds.contains("rate"));
}

TEST_CASE_FIXTURE(host, "shares of synthetic batches add up to them") {
  auto all = make_synthetic_source({{ids, image}}, 7, 3, memory);
  const auto floats = [](const feed_map& feeds) {
    const auto all = feeds.at("image").values<float>();
    return std::vector<float>{all.begin(), all.end()};
  };
  std::vector<float> joined;
  std::vector<std::int64_t> whole_numbers;
  for (std::int64_t r = 0; r < 3; ++r) {
    auto part = make_synthetic_source({{ids, image}}, 7, 3, memory, {r, 1, 3});
    const auto own = floats(part->batch(0, 2));
    joined.insert(joined.end(), own.begin(), own.end());
    const auto own_ids = values(part->batch(0, 2), "ids");
    whole_numbers.insert(whole_numbers.end(), own_ids.begin(), own_ids.end());
  }
  CHECK(joined == floats(all->batch(0, 2)));
  CHECK(whole_numbers == values(all->batch(0, 2), "ids"));
}

} // TEST_SUITE("training.batch_source")

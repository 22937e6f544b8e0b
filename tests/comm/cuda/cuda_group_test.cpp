// SPDX-License-Identifier: Apache-2.0
#include <kernels/cuda/cuda_rig.hpp>
#include <support/caught.hpp>

#include <troupe/comm/cuda/cuda_group.hpp>
#include <troupe/kernels/cuda/cuda_stream.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

using namespace comm;
using test::caught;
using test::says;

TEST_SUITE("comm.cuda_group") {

namespace {

/// What a rank calls; its end can be awaited.
struct rank_call final : work {
  void execute(stream&) override { end_of_rank->start(call, whole); }
  void completed(std::exception_ptr) noexcept override {}

  struct end final : completion {
    void completed(std::exception_ptr failure) noexcept override {
      failure ? result.set_exception(std::move(failure)) : result.set_value();
    }
    std::promise<void> result;
  };

  communicator* end_of_rank = nullptr;
  variable value;
  std::vector<rank_value> values;
  collective_call call;
  end whole;
};

/// Ranks with a variable each.
class ranks {
public:
  ranks(int count, std::uint64_t seed)
    : devices_(test::make_cuda_devices(test::make_test_driver(seed), count)) {
    std::vector<device*> all;
    for (auto& d : devices_) {
      all.push_back(d.get());
      streams_.push_back(d->make_stream({.name = "collective"}));
    }
    ends_ = make_cuda_group(all);
    calls_.resize(devices_.size());
  }

  std::size_t size() const { return devices_.size(); }

  /// Gives a rank `numbers`; none: the rank is idle.
  void give(std::size_t rank, const std::vector<float>& numbers) {
    auto& c = calls_[rank].emplace();
    if (numbers.empty())
      return;
    arena host{make_host_memory_source()};
    auto t = tensor::make(host, {static_cast<std::int64_t>(numbers.size())},
                          dtype::float32);
    std::ranges::copy(numbers, t.data<float>());
    c.value.set(devices_[rank]->to_device(t));
  }
  /// Gives a rank rows with a number each.
  void give_rows(std::size_t rank, std::int64_t height,
                 const std::vector<std::int64_t>& rows,
                 const std::vector<float>& values) {
    give(rank, values);
    arena host{make_host_memory_source()};
    const auto entries = static_cast<std::int64_t>(rows.size());
    auto t = tensor::make(host, {entries}, dtype::int64);
    std::ranges::copy(rows, t.data<std::int64_t>());
    auto& given = value(rank);
    given.set(selected_rows{{},
                            height,
                            values.empty() ? tensor{} : given.as_tensor(),
                            devices_[rank]->to_device(t)});
  }
  variable& value(std::size_t rank) { return calls_[rank]->value; }

  /// All ranks merge their variables. Throws what rank 0 is told.
  void merge(collective_kind kind, std::size_t root = 0) {
    for (std::size_t i = 0; i < size(); ++i) {
      const auto r = (i + 1) % size(); // rank 0 comes last
      auto& c = *calls_[r];
      c.end_of_rank = ends_[r].get();
      c.values = {{"x", &c.value, &c.value}};
      c.call = {kind, root, c.values};
      try {
        streams_[r]->launch(c, {.tell_completion = false});
      } catch (...) { // then the rank is not told otherwise
        c.whole.result.set_exception(std::current_exception());
      }
    }
    std::exception_ptr failure;
    for (std::size_t r = size(); r-- > 0;)
      try {
        calls_[r]->whole.result.get_future().get();
        failure = nullptr;
      } catch (...) {
        failure = std::current_exception();
      }
    if (failure)
      std::rethrow_exception(failure);
  }

  std::vector<float> got(std::size_t rank) {
    return read<float>(rank, value(rank).as_tensor());
  }
  /// The row and the number of each entry.
  std::vector<std::pair<std::int64_t, float>> got_rows(std::size_t rank) {
    const auto& found = value(rank).as_rows();
    const auto rows = read<std::int64_t>(rank, found.numbers);
    const auto numbers = read<float>(rank, found.values);
    std::vector<std::pair<std::int64_t, float>> entries;
    for (std::size_t i = 0; i < rows.size(); ++i)
      entries.emplace_back(rows[i], numbers[i]);
    return entries;
  }

private:
  template <class T>
  std::vector<T> read(std::size_t rank, const tensor& t) {
    arena host{make_host_memory_source()};
    const auto there = devices_[rank]->to_host(t, host);
    const auto v = there.values<T>();
    return {v.begin(), v.end()};
  }

  std::vector<std::shared_ptr<device>> devices_;
  std::vector<std::optional<rank_call>> calls_;
  std::vector<std::unique_ptr<communicator>> ends_;
  std::vector<std::unique_ptr<stream>> streams_;
};

const std::vector<std::vector<float>> numbers{
  {1e8f, 1, 2}, {1, -1, 0.5f}, {-1e8f, 3, 0.25f}, {7, 8, 9}};

/// ((x0 + x1) + x2) + ...
std::vector<float> sum_in_order(std::size_t count) {
  auto sum = numbers[0];
  for (std::size_t r = 1; r < count; ++r)
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += numbers[r][i];
  return sum;
}

} // namespace

TEST_CASE("all CUDA devices get the sum in rank order") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed)
    for (int count : {1, 2, 4}) {
      ranks all{count, seed};
      for (std::size_t r = 0; r < all.size(); ++r)
        all.give(r, numbers[r]);
      all.merge(collective_kind::all_reduce);
      for (std::size_t r = 0; r < all.size(); ++r)
        CHECK(all.got(r) == sum_in_order(all.size()));
    }
}

TEST_CASE("any root gets the sum in rank order") {
  for (std::size_t root = 0; root < 4; ++root) {
    ranks all{4, root + 1};
    for (std::size_t r = 0; r < 4; ++r)
      all.give(r, numbers[r]);
    all.merge(collective_kind::reduce, root);
    CHECK(all.got(root) == sum_in_order(4));
  }
}

TEST_CASE("all CUDA devices get the root's value") {
  ranks all{3, 1};
  for (std::size_t r = 0; r < 3; ++r)
    all.give(r, r == 2 ? numbers[2] : std::vector<float>{});
  all.merge(collective_kind::broadcast, 2);
  for (std::size_t r = 0; r < 3; ++r)
    CHECK(all.got(r) == numbers[2]);
}

TEST_CASE("an idle CUDA device adds nothing and gets the sum") {
  for (std::size_t idle = 0; idle < 2; ++idle) {
    ranks all{2, 3};
    all.give(idle, {});
    all.give(1 - idle, numbers[1]);
    all.merge(collective_kind::all_reduce);
    CHECK(all.got(0) == numbers[1]);
    CHECK(all.got(1) == numbers[1]);
  }
}

TEST_CASE("all CUDA devices get the rows of all, in rank order") {
  const std::vector<std::pair<std::int64_t, float>> wanted{
    {4, 1.0f}, {0, 2.0f}, {4, 3.0f}, {-1, 0.0f}};
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    ranks all{3, seed};
    all.give_rows(0, 5, {4, 0}, {1, 2});
    all.give(1, {});
    all.give_rows(2, 5, {4, -1}, {3, 0});
    all.merge(collective_kind::all_reduce);
    for (std::size_t r = 0; r < 3; ++r) {
      CHECK(all.got_rows(r) == wanted);
      CHECK(all.value(r).as_rows().height == 5);
    }
  }
}

TEST_CASE("rows that do not fit together fail on all CUDA devices") {
  ranks all{2, 1};
  all.give_rows(0, 5, {4}, {1});
  all.give_rows(1, 6, {4}, {1});
  CHECK(caught([&] { all.merge(collective_kind::all_reduce); }).code()
        == errc::shape_mismatch);
  for (std::size_t tensor_of : {0, 1}) {
    all.give(tensor_of, {1});
    all.give_rows(1 - tensor_of, 5, {4}, {1});
    CHECK(says(caught([&] { all.merge(collective_kind::all_reduce); }),
               "gives a tensor where others give rows"));
  }
  for (std::size_t r = 0; r < 2; ++r)
    all.give_rows(r, 5, {4}, {1});
  CHECK(says(caught([&] { all.merge(collective_kind::broadcast); }),
             "selected rows are not sent to others"));
}

TEST_CASE("values that do not fit together fail on all CUDA devices") {
  ranks all{2, 1};
  all.give(0, numbers[0]);
  all.give(1, {1, 2});
  const auto e = caught([&] { all.merge(collective_kind::all_reduce); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(e.where().variable == "x");
  for (std::size_t r = 0; r < 2; ++r)
    all.give(r, {});
  CHECK(says(caught([&] { all.merge(collective_kind::all_reduce); }),
             "no rank has a value"));
}

} // TEST_SUITE("comm.cuda_group")

} // namespace troupe

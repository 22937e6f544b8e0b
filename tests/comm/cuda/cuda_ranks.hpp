// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/cuda/cuda_rig.hpp>

#include <troupe/comm/cuda/star_group.hpp>
#include <troupe/kernels/cuda/cuda_stream.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace troupe::test {

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

  comm::communicator* end_of_rank = nullptr;
  variable value;
  std::vector<comm::rank_value> values;
  comm::collective_call call;
  end whole;
};

/// Ranks with a variable each.
class cuda_ranks {
public:
  using group_maker =
    std::function<std::vector<std::unique_ptr<comm::communicator>>(
      std::span<device* const>)>;

  explicit cuda_ranks(std::vector<std::shared_ptr<device>> devices,
                      const group_maker& make_group = comm::make_star_group)
    : devices_(std::move(devices)) {
    std::vector<device*> all;
    for (auto& d : devices_) {
      all.push_back(d.get());
      streams_.push_back(d->make_stream({.name = "collective"}));
    }
    ends_ = make_group(all);
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
  void merge(comm::collective_kind kind, std::size_t root = 0) {
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
  std::vector<std::unique_ptr<comm::communicator>> ends_;
  std::vector<std::unique_ptr<stream>> streams_;
};

} // namespace troupe::test

// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data/batch_source.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/kernels/io/reserved_memory.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

namespace troupe {

namespace {

class dataset_source : public batch_source {
public:
  dataset_source(dataset data, const sampling& options, arena& memory)
    : data_(std::move(data)), options_(options), memory_(memory),
      order_(static_cast<std::size_t>(data_.samples)) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    if (options_.shuffle)
      shuffle(0);
  }

  std::uint64_t steps_per_epoch() const override {
    return static_cast<std::uint64_t>((data_.samples + options_.batch - 1)
                                      / options_.batch);
  }

  std::int64_t batch_samples(std::uint64_t index) const override {
    const auto first = static_cast<std::int64_t>(index) * options_.batch;
    return std::min(options_.batch, data_.samples - first);
  }

  feed_map batch(std::uint64_t epoch, std::uint64_t index) override {
    if (options_.shuffle && epoch != epoch_)
      shuffle(epoch);
    const auto wanted = options_.share.of(batch_samples(index));
    feed_map feeds;
    if (wanted.count == 0)
      return feeds;
    const auto first =
      static_cast<std::int64_t>(index) * options_.batch + wanted.first;
    for (auto& [name, column] : data_.columns)
      feeds.emplace(
        name, naming_file("feed " + quoted_name(name), [&, &all = column] {
          return pick(all, {first, wanted.count});
        }));
    return feeds;
  }

private:
  /// A Fisher-Yates shuffle. std::shuffle would give another order with another
  /// standard library. bench/peers/sample_order.py does the same.
  void shuffle(std::uint64_t epoch) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::mt19937_64 draw(options_.seed * 0x9e3779b97f4a7c15u + epoch);
    for (std::size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[draw() % i]);
    epoch_ = epoch;
  }

  /// @param wanted positions in the order of the epoch
  tensor pick(const tensor& column, batch_share::range wanted) const {
    shape dims = column.dims();
    const std::size_t row = column.bytes() / order_.size();
    dims[0] = wanted.count;
    tensor out = tensor::make(memory_, dims, column.type());
    const auto first = static_cast<std::size_t>(wanted.first);
    for (std::size_t i = 0; i < static_cast<std::size_t>(wanted.count); ++i)
      std::memcpy(out.raw() + i * row, column.raw() + order_[first + i] * row,
                  row);
    return out;
  }

  dataset data_;
  sampling options_;
  arena& memory_;
  std::vector<std::size_t> order_;
  std::uint64_t epoch_ = 0;
};

} // namespace

std::unique_ptr<batch_source>
make_dataset_source(dataset data, const sampling& options, arena& memory) {
  if (options.batch < 1)
    throw error(errc::invalid_argument,
                "batch " + std::to_string(options.batch) + " is below 1");
  return std::make_unique<dataset_source>(std::move(data), options, memory);
}

} // namespace troupe

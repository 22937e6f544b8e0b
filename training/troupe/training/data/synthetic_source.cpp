// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data/batch_source.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/random.hpp>

#include <array>
#include <string>
#include <vector>

namespace troupe {

namespace {

/// Enough that a network does not memorize a single batch at once, few enough
/// to keep in memory.
constexpr std::uint64_t steps = 8;

using uniform_numbers = block_reader<float>;

/// The numbers of a share of the batch, of which element `first` is the first.
struct drawn_numbers {
  uniform_numbers of_batch;
  std::uint64_t first;

  float operator()(std::size_t i) { return of_batch(first + i); }
};

template <class T>
void fill_whole(tensor& out, drawn_numbers draw, std::int64_t below) {
  auto values = out.values<T>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] =
      static_cast<T>(static_cast<double>(draw(i)) * static_cast<double>(below));
}

void fill_uniform(tensor& out, drawn_numbers draw) {
  auto values = out.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = draw(i);
}

void fill(tensor& out, const feed_info& feed, const drawn_numbers& draw) {
  switch (feed.type) {
  case dtype::float32:
    return feed.below ? fill_whole<float>(out, draw, *feed.below)
                      : fill_uniform(out, draw);
  case dtype::int32: return fill_whole<std::int32_t>(out, draw, *feed.below);
  case dtype::int64: return fill_whole<std::int64_t>(out, draw, *feed.below);
  default:
    throw error(errc::invalid_argument,
                "no synthetic values for feed " + to_string(feed),
                {.variable = feed.name});
  }
}

void check(const feed_info& feed) {
  sample_elements(feed);
  if (!is_floating(feed.type) && !feed.below)
    throw error(errc::invalid_argument,
                "feed " + to_string(feed)
                  + " has no known range; give it as \"below\" in program.json",
                {.variable = feed.name});
}

class synthetic_source : public batch_source {
public:
  synthetic_source(std::span<const feed_info> feeds, std::int64_t batch,
                   std::uint64_t seed, arena& memory, batch_share share)
    : feeds_(feeds.begin(), feeds.end()), batch_(batch), seed_(seed),
      memory_(memory), share_(share.of(batch)) {}

  std::uint64_t steps_per_epoch() const override { return steps; }
  std::int64_t batch_samples(std::uint64_t) const override { return batch_; }

  feed_map batch(std::uint64_t, std::uint64_t index) override {
    feed_map& made = made_[index];
    if (made.empty())
      for (const feed_info& feed : feeds_)
        if (share_.count > 0 || !feed.has_samples())
          made.emplace(feed.name, make(feed, index));
    return made;
  }

private:
  tensor make(const feed_info& feed, std::uint64_t index) const {
    shape dims = feed.dims;
    std::int64_t first = 0;
    if (feed.has_samples()) {
      dims[0] = share_.count;
      first = share_.first * sample_elements(feed);
    }
    tensor out = memory_for(feed, dims);
    const philox random(seed_, stable_hash(feed.name.c_str()), index);
    fill(out, feed,
         {{random, &philox::uniform_block}, static_cast<std::uint64_t>(first)});
    return out;
  }

  tensor memory_for(const feed_info& feed, const shape& dims) const {
    try {
      return tensor::make(memory_, dims, feed.type);
    } catch (const error& failure) {
      throw failure.with_context({.variable = feed.name});
    }
  }

  std::vector<feed_info> feeds_;
  std::int64_t batch_;
  std::uint64_t seed_;
  arena& memory_;
  batch_share::range share_;
  std::array<feed_map, steps> made_;
};

} // namespace

std::unique_ptr<batch_source>
make_synthetic_source(std::span<const feed_info> feeds, std::int64_t batch,
                      std::uint64_t seed, arena& memory, batch_share share) {
  if (batch < 1)
    throw error(errc::invalid_argument,
                "batch " + std::to_string(batch) + " is below 1");
  for (const feed_info& feed : feeds)
    check(feed);
  return std::make_unique<synthetic_source>(feeds, batch, seed, memory, share);
}

} // namespace troupe

// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/batch_source.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/io/npz.hpp>

#include <cstring>
#include <string>

namespace troupe::apps {

namespace {

class npz_source : public batch_source {
public:
  npz_source(named_tensors arrays, arena& memory)
    : arrays_(std::move(arrays)), memory_(memory) {}

  std::uint64_t steps_per_epoch() const override {
    return static_cast<std::uint64_t>(arrays_.begin()->second.dims()[0]);
  }

  std::int64_t batch_samples(std::uint64_t) const override {
    return arrays_.begin()->second.dims()[1];
  }

  feed_map batch(std::uint64_t, std::uint64_t index) override {
    feed_map feeds;
    for (auto& [name, array] : arrays_)
      feeds.emplace(name, slice(array, static_cast<std::size_t>(index)));
    return feeds;
  }

private:
  tensor slice(const tensor& array, std::size_t index) const {
    tensor out = tensor::make(memory_, shape(array.dims().dims().subspan(1)),
                              array.type());
    std::memcpy(out.raw(), array.raw() + index * out.bytes(), out.bytes());
    return out;
  }

  named_tensors arrays_;
  arena& memory_;
};

/// Takes the array of one feed out of `arrays` and checks it.
tensor take(const feed_info& feed, named_tensors& arrays,
            const std::string& file) {
  const auto found = arrays.find(feed.name);
  if (found == arrays.end())
    throw error(errc::not_found, file + ": no array for feed " + feed.name,
                {.variable = feed.name});
  const tensor array = found->second;
  arrays.erase(found);
  if (array.dims().rank() < 2 || array.numel() == 0)
    throw error(errc::shape_mismatch,
                file + ": array " + feed.name + " "
                  + troupe::to_string(array.dims())
                  + " has no leading axis of steps, or no elements",
                {.variable = feed.name});
  check_feed(feed, array.type(), shape(array.dims().dims().subspan(1)), file);
  check_range(feed, array, file);
  return array;
}

void check_extents(const named_tensors& arrays, const std::string& file) {
  const auto& [first_name, first] = *arrays.begin();
  for (auto& [name, array] : arrays)
    for (std::size_t axis : {0u, 1u})
      if (array.dims()[axis] != first.dims()[axis])
        throw error(
          errc::shape_mismatch,
          file + ": " + name + " has " + std::to_string(array.dims()[axis])
            + (axis == 0 ? " steps, " : " samples per step, ") + first_name
            + " has " + std::to_string(first.dims()[axis]),
          {.variable = name});
}

} // namespace

std::unique_ptr<batch_source> make_npz_source(const std::filesystem::path& file,
                                              std::span<const feed_info> feeds,
                                              arena& memory) {
  named_tensors arrays = read_npz(file, memory);
  named_tensors taken;
  for (const feed_info& feed : feeds)
    taken.emplace(feed.name, take(feed, arrays, file.string()));
  if (!arrays.empty())
    throw error(errc::not_found, file.string() + ": the program has no feed "
                                   + arrays.begin()->first);
  if (taken.empty())
    throw error(errc::invalid_argument,
                file.string() + ": the program needs no feeds");
  check_extents(taken, file.string());
  return std::make_unique<npz_source>(std::move(taken), memory);
}

} // namespace troupe::apps

// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data/batch_source.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/kernels/io/npz.hpp>
#include <troupe/kernels/io/reserved_memory.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace troupe {

namespace {

/// The rows of a step, and how they form sequences.
struct step_rows {
  std::int64_t first = 0;
  std::int64_t count = 0;
  shared_lod levels;
};

/// The array of one feed: [steps, samples, ...]; or [rows, ...], the sequences
/// of all steps concatenated; or [steps, ...], the values of a feed that is not
/// split.
struct column {
  tensor values;
  std::vector<step_rows> sequences; ///< one per step; empty: no sequences
  bool has_samples = true;

  std::int64_t steps() const {
    return sequences.empty() ? values.dims()[0]
                             : static_cast<std::int64_t>(sequences.size());
  }
  std::int64_t samples() const {
    return sequences.empty() ? values.dims()[1]
                             : num_sequences(*sequences.front().levels);
  }

  /// The whole value of a step, on the memory of `values`.
  tensor step(std::size_t index) const {
    if (sequences.empty())
      return values.rows(static_cast<std::int64_t>(index), 1)
        .reshaped(shape(values.dims().dims().subspan(1)));
    const auto& step = sequences[index];
    tensor rows = values.rows(step.first, step.count);
    rows.set_levels(step.levels);
    return rows;
  }

  /// @param wanted samples; without a meaning if the feed is not split
  tensor batch(std::size_t index, batch_share::range wanted,
               arena& memory) const {
    tensor part = step(index);
    if (has_samples)
      part = part.samples(wanted.first, wanted.count);
    tensor out = clone(part, memory);
    out.set_levels(part.levels());
    return out;
  }
};

using npz_columns = std::map<std::string, column>;

/// The first feed that has samples; `end` if there is none.
npz_columns::const_iterator first_with_samples(const npz_columns& feeds) {
  return std::ranges::find_if(
    feeds, [](const auto& feed) { return feed.second.has_samples; });
}

class npz_source : public batch_source {
public:
  npz_source(npz_columns feeds, arena& memory, batch_share share)
    : feeds_(std::move(feeds)), memory_(memory), share_(share) {}

  std::uint64_t steps_per_epoch() const override {
    return static_cast<std::uint64_t>(feeds_.begin()->second.steps());
  }

  std::int64_t batch_samples(std::uint64_t) const override {
    return first_with_samples(feeds_)->second.samples();
  }

  feed_map batch(std::uint64_t, std::uint64_t index) override {
    const auto wanted = share_.of(batch_samples(index));
    feed_map feeds;
    for (auto& [name, feed] : feeds_)
      if (wanted.count > 0 || !feed.has_samples)
        feeds.emplace(
          name, naming_file("feed " + quoted_name(name), [&, &column = feed] {
            return column.batch(static_cast<std::size_t>(index), wanted,
                                memory_);
          }));
    return feeds;
  }

private:
  npz_columns feeds_;
  arena& memory_;
  batch_share share_;
};

/// Takes the offsets `name`.lod0, .lod1 ... of a feed's sequences out of
/// `arrays`. lod0 is [steps, samples + 1]. Each further level has, for each
/// step, one offset more than the level before counts in that step.
class level_reader {
public:
  level_reader(const std::string& name, named_tensors& arrays,
               const std::string& file)
    : name_(name), file_(file) {
    for (std::size_t i = 0;; ++i) {
      const auto found = arrays.find(name + ".lod" + std::to_string(i));
      if (found == arrays.end())
        break;
      check(found->second, i);
      levels_.push_back(found->second);
      arrays.erase(found);
    }
    next_.resize(levels_.size());
  }

  bool empty() const { return levels_.empty(); }

  std::vector<step_rows> split(std::int64_t rows) {
    std::vector<step_rows> steps;
    std::int64_t first = 0;
    // Ends at the first step that has too many, so that the sum stays small.
    for (std::int64_t i = 0; i < levels_.front().dims()[0] && first <= rows;
         ++i) {
      auto& step = steps.emplace_back();
      auto levels = next_levels();
      step.first = first;
      step.count = static_cast<std::int64_t>(levels.back().back());
      step.levels = std::make_shared<const lod>(std::move(levels));
      first += step.count;
    }
    if (first != rows)
      bad("has " + std::to_string(rows) + " rows, its sequences have "
          + std::to_string(first));
    for (std::size_t i = 0; i < levels_.size(); ++i)
      if (next_[i] != levels_[i].numel())
        bad("has offsets left over in lod" + std::to_string(i));
    return steps;
  }

private:
  [[noreturn]] void bad(const std::string& why) const {
    throw error(errc::shape_mismatch, file_ + ": array " + name_ + " " + why,
                {.variable = name_});
  }

  void check(const tensor& level, std::size_t number) const {
    const auto array = name_ + ".lod" + std::to_string(number);
    if (level.type() != dtype::int64)
      throw error(errc::dtype_mismatch,
                  file_ + ": " + array + " is "
                    + std::string(troupe::to_string(level.type()))
                    + ", expected int64",
                  {.variable = name_});
    const std::size_t rank = number == 0 ? 2 : 1;
    if (level.dims().rank() != rank || level.numel() == 0)
      bad("needs offsets "
          + std::string(rank == 2 ? "[steps, samples + 1] in lod0"
                                  : "of all steps in a list in lod1 and up")
          + ", not " + troupe::to_string(level.dims()));
  }

  /// Sums of two such offsets, or of one and a number of rows, do not overflow.
  void require_countable(std::size_t last, std::size_t number) const {
    const auto value = static_cast<std::int64_t>(last);
    if (value < 0)
      bad("has a negative offset in lod" + std::to_string(number));
    if (value >= std::int64_t{1} << 62)
      bad("has an offset in lod" + std::to_string(number)
          + " that is too large: " + std::to_string(value));
  }

  lod next_levels() {
    lod levels;
    auto count = levels_.front().dims()[1];
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      if (count > levels_[i].numel() - next_[i])
        bad("has too few offsets in lod" + std::to_string(i));
      const auto* from = levels_[i].data<std::int64_t>() + next_[i];
      levels.emplace_back(from, from + count);
      next_[i] += count;
      require_countable(levels.back().back(), i);
      count = static_cast<std::int64_t>(levels.back().back()) + 1;
    }
    try {
      check_lod(levels, static_cast<std::int64_t>(levels.back().back()));
    } catch (const error& e) {
      bad(e.what());
    }
    return levels;
  }

  std::string name_;
  std::string file_;
  std::vector<tensor> levels_;
  std::vector<std::int64_t> next_; ///< per level: number of offsets read so far
};

/// Takes the array of one feed out of `arrays` and checks it.
column take(const feed_info& feed, named_tensors& arrays,
            const std::string& file) {
  const auto found = arrays.find(feed.name);
  if (found == arrays.end())
    throw error(errc::not_found, file + ": no array for feed " + feed.name,
                {.variable = feed.name});
  const tensor array = found->second;
  arrays.erase(found);
  level_reader levels(feed.name, arrays, file);
  const std::size_t leading = levels.empty() ? 1 : 0;
  const std::size_t axes = feed.has_samples() ? 1 + leading : 1;
  if (array.dims().rank() < axes || array.numel() == 0)
    throw error(errc::shape_mismatch,
                file + ": array " + feed.name + " "
                  + troupe::to_string(array.dims())
                  + " has no leading axis of steps, or no elements",
                {.variable = feed.name});
  check_feed(feed, array.type(), shape(array.dims().dims().subspan(leading)),
             file);
  check_range(feed, array, file);
  if (levels.empty())
    return {array, {}, feed.has_samples()};
  return {array, levels.split(array.dims()[0])};
}

void check_extents(const npz_columns& feeds, const std::string& file) {
  const auto& [first_name, first] = *first_with_samples(feeds);
  const auto require = [&](const std::string& name, std::int64_t count,
                           std::int64_t expected, const std::string& what) {
    if (count != expected)
      throw error(errc::shape_mismatch,
                  file + ": " + name + " has " + std::to_string(count) + " "
                    + what + ", " + first_name + " has "
                    + std::to_string(expected),
                  {.variable = name});
  };
  for (auto& [name, feed] : feeds) {
    require(name, feed.steps(), first.steps(), "steps");
    if (feed.has_samples)
      require(name, feed.samples(), first.samples(), "samples per step");
  }
}

} // namespace

std::unique_ptr<batch_source> make_npz_source(const std::filesystem::path& file,
                                              std::span<const feed_info> feeds,
                                              arena& memory,
                                              batch_share share) {
  named_tensors arrays = read_npz(file, memory);
  npz_columns taken;
  for (const feed_info& feed : feeds)
    if (!feed.persistable || arrays.contains(feed.name))
      taken.emplace(feed.name, take(feed, arrays, file.string()));
  if (!arrays.empty())
    throw error(errc::not_found, file.string() + ": the program has no feed "
                                   + quoted_name(arrays.begin()->first));
  if (first_with_samples(taken) == taken.end())
    throw error(errc::invalid_argument,
                file.string() + ": the program needs no feeds");
  check_extents(taken, file.string());
  return std::make_unique<npz_source>(std::move(taken), memory, share);
}

} // namespace troupe

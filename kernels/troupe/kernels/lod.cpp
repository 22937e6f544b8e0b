// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/lod.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <string>

namespace troupe {

namespace {

[[noreturn]] void bad_lod(std::size_t level, const std::string& why) {
  throw error(errc::invalid_argument,
              "sequence offsets of level " + std::to_string(level) + " " + why);
}

/// Offsets `from[first..last]`, minus the first of them.
std::vector<std::uint64_t> rebased(const std::vector<std::uint64_t>& from,
                                   std::uint64_t first, std::uint64_t last) {
  const auto begin = from.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = from.begin() + static_cast<std::ptrdiff_t>(last) + 1;
  std::vector<std::uint64_t> offsets(begin, end);
  const auto start = offsets.front();
  for (auto& offset : offsets)
    offset -= start;
  return offsets;
}

} // namespace

void check_lod(const lod& levels, std::int64_t rows) {
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const auto& level = levels[i];
    if (level.empty() || level.front() != 0)
      bad_lod(i, "do not begin with 0");
    if (!std::is_sorted(level.begin(), level.end()))
      bad_lod(i, "fall");
    const auto end = i + 1 < levels.size() ? levels[i + 1].size() - 1
                                           : static_cast<std::uint64_t>(rows);
    if (level.back() != end)
      bad_lod(i, "end with " + std::to_string(level.back()) + " instead of "
                   + std::to_string(end));
  }
}

shared_lod make_lod(lod levels, std::int64_t rows) {
  check_lod(levels, rows);
  return levels.empty() ? nullptr
                        : std::make_shared<const lod>(std::move(levels));
}

lod_slice slice_lod(const lod& levels, std::int64_t first, std::int64_t count) {
  if (first < 0 || count < 0 || first + count > num_sequences(levels))
    throw error(errc::out_of_range, "sequences " + std::to_string(first)
                                      + " to " + std::to_string(first + count)
                                      + " of "
                                      + std::to_string(num_sequences(levels)));
  lod_slice part;
  auto begin = static_cast<std::uint64_t>(first);
  auto end = static_cast<std::uint64_t>(first + count);
  for (const auto& level : levels) {
    part.levels.push_back(rebased(level, begin, end));
    begin = level[begin];
    end = level[end];
  }
  part.first_row = static_cast<std::int64_t>(begin);
  part.last_row = static_cast<std::int64_t>(end);
  return part;
}

lod append_lod(lod front, const lod& back) {
  if (front.size() != back.size())
    throw error(errc::shape_mismatch,
                "sequences of " + std::to_string(front.size()) + " and "
                  + std::to_string(back.size()) + " levels cannot be joined");
  for (std::size_t i = 0; i < front.size(); ++i) {
    const auto end = front[i].back();
    for (std::size_t k = 1; k < back[i].size(); ++k)
      front[i].push_back(end + back[i][k]);
  }
  return front;
}

} // namespace troupe

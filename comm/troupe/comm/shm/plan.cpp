// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/shm/plan.hpp>

#include <troupe/comm/local/reduce_kernels.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace troupe::comm::shm {

namespace {

/// Size of a part. Large enough that claiming it costs nothing, small enough
/// that no process waits long for the last part of another.
constexpr std::size_t part_bytes = std::size_t{256} << 10;
/// A sum is written to several ranks block by block, while it is in the
/// first-level cache.
constexpr std::size_t block_bytes = std::size_t{8} << 10;

} // namespace

call_plan::call_plan(std::vector<const shared_segment*> segments)
  : letters_plan(segments.size()), segments_(std::move(segments)) {}

void call_plan::read(const call_slot& call) {
  for (std::size_t r = 0; r < size(); ++r)
    letters_[r] = letter_view{segments_[r]->bytes(), call.letters[r].offset,
                              call.letters[r].bytes, r};
  read_letters();
}

void call_plan::check() {
  letters_plan::check(true);
}

// -- sums ---------------------------------------------------------------------

std::size_t call_plan::parts() const noexcept {
  return (bytes_ + part_bytes - 1) / part_bytes;
}

void call_plan::add_part(std::size_t part) const noexcept {
  const auto first = part * part_bytes;
  const auto last = std::min(first + part_bytes, bytes_);
  for (std::size_t i = 0; i < values().size(); ++i) {
    const auto& v = values()[i];
    const auto from = std::max(first, v.first);
    const auto to = std::min(last, v.first + v.bytes);
    if (from < to)
      add_range(i, from - v.first, to - from);
  }
}

void call_plan::add_range(std::size_t i, std::size_t first,
                          std::size_t bytes) const noexcept {
  const auto& plan = values()[i];
  const auto type = value(first_of(plan.givers), i).type;
  const auto element = size_of(type);
  std::array<const std::byte*, max_ranks> sources;
  std::size_t count = 0;
  for_each_rank(plan.givers,
                [&](std::size_t r) { sources[count++] = elements(r, i); });
  const auto to = first_of(plan.written);
  const local::destination sum{elements(to, i)};
  for (const auto end = first + bytes; first < end; first += block_bytes) {
    const auto block = std::min(block_bytes, end - first);
    local::add(type, {sources.data(), count}, sum, first / element,
               block / element);
    for_each_rank(plan.written & ~bit_of(to), [&](std::size_t r) {
      local::copy(sum.data, {elements(r, i)}, first, block);
    });
  }
}

// -- readers ------------------------------------------------------------------

rank_mask call_plan::readers() const noexcept {
  rank_mask all = 0;
  for (auto& v : values())
    all |= v.readers;
  return all;
}

void call_plan::copy_results(std::size_t rank, std::span<const rank_value> to,
                             arena& memory) const {
  for (std::size_t i = 0; i < values().size(); ++i) {
    if ((values()[i].readers & bit_of(rank)) == 0)
      continue;
    if (!values()[i].has_rows) {
      to[i].out->set(copy_of(i, memory));
      continue;
    }
    to[i].out->set(local::merge_rows(rows_of(i), memory));
  }
}

tensor call_plan::copy_of(std::size_t i, arena& memory) const {
  const auto& plan = values()[i];
  const auto from =
    first_of(kind() == collective_kind::broadcast ? plan.givers : plan.written);
  const auto& v = value(from, i);
  require_whole(from, v);
  auto made = tensor::make(memory, v.extents(), v.type);
  if (v.bytes > 0)
    std::memcpy(made.raw(), elements(from, i), v.bytes);
  return made;
}

} // namespace troupe::comm::shm

// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/shm/plan.hpp>

#include <troupe/base/error.hpp>
#include <troupe/comm/call_text.hpp>
#include <troupe/comm/local/reduce_kernels.hpp>
#include <troupe/comm/value_checks.hpp>
#include <troupe/kernels/memory/size_class.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

namespace troupe::comm::shm {

namespace {

/// Size of a part. Large enough that claiming it costs nothing, small enough
/// that no process waits long for the last part of another.
constexpr std::size_t part_bytes = std::size_t{256} << 10;
/// A sum is written to several ranks block by block, while it is in the
/// first-level cache.
constexpr std::size_t block_bytes = std::size_t{8} << 10;

std::size_t in_lines(std::size_t bytes) {
  return (bytes + cache_line - 1) / cache_line * cache_line;
}

std::size_t first_of(rank_mask ranks) {
  return static_cast<std::size_t>(std::countr_zero(ranks));
}

/// Throws if the value has other bytes than its shape says: nobody may read or
/// write beyond a value because of a malformed letter.
void require_whole(std::size_t rank, const letter_value& v) {
  const auto elements = v.holds == letter_value::content::rows && v.axes == 0
                          ? 0
                          : static_cast<std::size_t>(v.extents().numel());
  if (v.bytes != elements * size_of(v.type))
    throw error(errc::peer_failure,
                number_of_rank(rank) + " sent a malformed call");
}

/// Calls `use(rank)` for each rank of the mask, in order.
template <class Use>
void for_each_rank(rank_mask ranks, Use use) {
  for (; ranks != 0; ranks &= ranks - 1)
    use(first_of(ranks));
}

} // namespace

call_plan::call_plan(std::vector<const shared_segment*> segments)
  : segments_(std::move(segments)), letters_(segments_.size()) {}

void call_plan::read(const call_slot& call) {
  for (std::size_t r = 0; r < size(); ++r)
    letters_[r] = letter_view{*segments_[r], call.letters[r].offset,
                              call.letters[r].bytes, r};
  const auto& like = letters_.front().head();
  kind_ = like.kind;
  root_ = like.root;
  for (std::size_t r = 1; r < size(); ++r)
    if (letters_[r].head().values != like.values)
      throw error(errc::peer_failure,
                  number_of_rank(r) + " sent a malformed call");
  values_.clear();
  bytes_ = 0;
  for (std::size_t i = 0; i < like.values; ++i) {
    values_.push_back(plan_of(i, bytes_));
    bytes_ += in_lines(values_.back().bytes);
  }
}

bool call_plan::gives(std::size_t rank, std::size_t i) const noexcept {
  return value(rank, i).holds != content::nothing
         && (kind_ != collective_kind::broadcast || rank == root_);
}

bool call_plan::gets(std::size_t rank, std::size_t i) const noexcept {
  return value(rank, i).wanted
         && (kind_ != collective_kind::reduce || rank == root_);
}

call_plan::value_plan call_plan::plan_of(std::size_t i,
                                         std::size_t first) const {
  value_plan plan{.first = first};
  rank_mask takers = 0;
  for (std::size_t r = 0; r < size(); ++r) {
    if (gives(r, i))
      plan.givers |= bit_of(r);
    if (gets(r, i))
      takers |= bit_of(r);
    plan.has_rows |= gives(r, i) && value(r, i).holds == content::rows;
  }
  plan.readers = plan.has_rows ? takers : takers & ~plan.givers;
  if (plan.has_rows || plan.givers == 0 || kind_ == collective_kind::broadcast)
    return plan;
  plan.written = takers & plan.givers;
  if (plan.written == 0) // readers need a copy, too
    plan.written = bit_of(first_of(plan.givers));
  const bool is_there = std::has_single_bit(plan.givers);
  plan.bytes = is_there ? 0 : value(first_of(plan.givers), i).bytes;
  return plan;
}

// -- checks -------------------------------------------------------------------

void call_plan::check() {
  if (root_ >= size())
    refuse_call(kind_, "root " + std::to_string(root_) + " of "
                         + std::to_string(size()) + " ranks");
  for (std::size_t i = 0; i < values_.size(); ++i)
    try {
      if (values_[i].has_rows)
        check_sparse(i);
      else
        check_dense(i);
    } catch (const error& e) {
      throw e.with_context({.variable = std::string{letters_[0].name(i)}});
    }
}

void call_plan::check_dense(std::size_t i) const {
  const auto givers = values_[i].givers;
  if (givers == 0 && kind_ == collective_kind::broadcast)
    refuse_rank(kind_, root_, "is the root and has no value");
  if (givers == 0)
    refuse_call(kind_, "no rank has a value");
  if (kind_ == collective_kind::broadcast)
    return;
  const auto first = first_of(givers);
  const auto dims = value(first, i).extents();
  const value_form like{first, value(first, i).type, dims};
  require_addable(kind_, like);
  for_each_rank(givers, [&](std::size_t r) {
    require_alike(kind_, {r, value(r, i).type, value(r, i).extents()}, like);
    require_whole(r, value(r, i));
  });
}

void call_plan::check_sparse(std::size_t i) const {
  if (kind_ == collective_kind::broadcast)
    refuse_rank(kind_, root_, "gives rows, expected a tensor");
  for_each_rank(values_[i].givers, [&](std::size_t r) {
    if (value(r, i).holds == content::dense)
      refuse_rank(kind_, r, "gives a tensor, another rank rows");
    require_whole(r, value(r, i));
  });
  gather_rows(i);
  local::check_rows(rows_);
}

void call_plan::gather_rows(std::size_t i) const {
  rows_.assign(size(), std::nullopt);
  for_each_rank(values_[i].givers, [&](std::size_t r) {
    const auto& v = value(r, i);
    rows_[r] = local::rows_view{letters_[r].rows(v), v.height,
                                v.axes > 0 ? elements(r, i) : nullptr,
                                v.extents(), v.type};
  });
}

// -- layouts ------------------------------------------------------------------

bool call_plan::needs_plain() const noexcept {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const auto& plan = values_[i];
    if (plan.givers == 0 || plan.has_rows)
      continue;
    const auto layout = value(first_of(plan.givers), i).layout;
    if (layout != 0 && plan.readers != 0)
      return true;
    bool differ = false;
    for_each_rank(plan.givers, [&](std::size_t r) {
      differ |= value(r, i).layout != layout;
    });
    if (differ)
      return true;
  }
  return false;
}

std::size_t call_plan::ranks_to_convert() const noexcept {
  return static_cast<std::size_t>(
    std::ranges::count_if(letters_, [](const letter_view& letter) {
      return std::ranges::any_of(
        letter.values(), [](const letter_value& v) { return v.layout != 0; });
    }));
}

// -- sums ---------------------------------------------------------------------

std::size_t call_plan::parts() const noexcept {
  return (bytes_ + part_bytes - 1) / part_bytes;
}

void call_plan::add_part(std::size_t part) const noexcept {
  const auto first = part * part_bytes;
  const auto last = std::min(first + part_bytes, bytes_);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const auto& v = values_[i];
    const auto from = std::max(first, v.first);
    const auto to = std::min(last, v.first + v.bytes);
    if (from < to)
      add_range(i, from - v.first, to - from);
  }
}

void call_plan::add_range(std::size_t i, std::size_t first,
                          std::size_t bytes) const noexcept {
  const auto& plan = values_[i];
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
  for (auto& v : values_)
    all |= v.readers;
  return all;
}

void call_plan::copy_results(std::size_t rank, std::span<const rank_value> to,
                             arena& memory) const {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if ((values_[i].readers & bit_of(rank)) == 0)
      continue;
    if (!values_[i].has_rows) {
      to[i].out->set(copy_of(i, memory));
      continue;
    }
    gather_rows(i);
    to[i].out->set(local::merge_rows(rows_, memory));
  }
}

tensor call_plan::copy_of(std::size_t i, arena& memory) const {
  const auto& plan = values_[i];
  const auto from =
    first_of(kind_ == collective_kind::broadcast ? plan.givers : plan.written);
  const auto& v = value(from, i);
  require_whole(from, v);
  auto made = tensor::make(memory, v.extents(), v.type);
  if (v.bytes > 0)
    std::memcpy(made.raw(), elements(from, i), v.bytes);
  return made;
}

} // namespace troupe::comm::shm

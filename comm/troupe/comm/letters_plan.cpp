// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/letters_plan.hpp>

#include <troupe/base/error.hpp>
#include <troupe/comm/call_text.hpp>
#include <troupe/comm/value_checks.hpp>
#include <troupe/kernels/memory/size_class.hpp>

#include <algorithm>
#include <bit>
#include <string>

namespace troupe::comm {

namespace {

std::size_t in_lines(std::size_t bytes) {
  return (bytes + cache_line - 1) / cache_line * cache_line;
}

} // namespace

void require_whole(std::size_t rank, const letter_value& v) {
  const auto elements = v.holds == letter_value::content::rows && v.axes == 0
                          ? 0
                          : static_cast<std::size_t>(v.extents().numel());
  if (v.bytes / size_of(v.type) != elements || v.bytes % size_of(v.type) != 0)
    throw error(errc::peer_failure,
                number_of_rank(rank) + " sent a malformed call");
}

void letters_plan::read(std::span<const letter_view> letters) {
  std::ranges::copy(letters, letters_.begin());
  read_letters();
}

void letters_plan::read_letters() {
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

bool letters_plan::gives(std::size_t rank, std::size_t i) const noexcept {
  return value(rank, i).holds != content::nothing
         && (kind_ != collective_kind::broadcast || rank == root_);
}

bool letters_plan::gets(std::size_t rank, std::size_t i) const noexcept {
  return value(rank, i).wanted
         && (kind_ != collective_kind::reduce || rank == root_);
}

letters_plan::value_plan letters_plan::plan_of(std::size_t i,
                                               std::size_t first) const {
  value_plan plan{.first = first};
  for (std::size_t r = 0; r < size(); ++r) {
    if (gives(r, i))
      plan.givers |= bit_of(r);
    if (gets(r, i))
      plan.takers |= bit_of(r);
    plan.has_rows |= gives(r, i) && value(r, i).holds == content::rows;
  }
  plan.readers = plan.has_rows ? plan.takers : plan.takers & ~plan.givers;
  if (plan.has_rows || plan.givers == 0 || kind_ == collective_kind::broadcast)
    return plan;
  plan.written = plan.takers & plan.givers;
  if (plan.written == 0) // readers need a copy, too
    plan.written = bit_of(first_of(plan.givers));
  const bool is_there = std::has_single_bit(plan.givers);
  plan.bytes = is_there ? 0 : value(first_of(plan.givers), i).bytes;
  return plan;
}

// -- checks -------------------------------------------------------------------

void letters_plan::check(bool rows_are_here) {
  if (root_ >= size())
    refuse_call(kind_, "root " + std::to_string(root_) + " of "
                         + std::to_string(size()) + " ranks");
  for (std::size_t i = 0; i < values_.size(); ++i)
    try {
      if (!values_[i].has_rows)
        check_dense(i);
      else
        check_sparse(i);
      if (values_[i].has_rows && rows_are_here)
        local::check_rows(rows_of(i));
    } catch (const error& e) {
      throw e.with_context({.variable = std::string{letters_[0].name(i)}});
    }
}

void letters_plan::check_dense(std::size_t i) const {
  const auto givers = values_[i].givers;
  if (givers == 0 && kind_ == collective_kind::broadcast)
    refuse_rank(kind_, root_, "is the root and has no value");
  if (givers == 0)
    refuse_call(kind_, "no rank has a value");
  if (kind_ == collective_kind::broadcast)
    return require_whole(root_, value(root_, i));
  const auto first = first_of(givers);
  const auto dims = value(first, i).extents();
  const value_form like{first, value(first, i).type, dims};
  require_addable(kind_, like);
  for_each_rank(givers, [&](std::size_t r) {
    require_alike(kind_, {r, value(r, i).type, value(r, i).extents()}, like);
    require_whole(r, value(r, i));
  });
}

void letters_plan::check_sparse(std::size_t i) const {
  if (kind_ == collective_kind::broadcast)
    refuse_rank(kind_, root_, "gives rows, expected a tensor");
  for_each_rank(values_[i].givers, [&](std::size_t r) {
    if (value(r, i).holds == content::dense)
      refuse_rank(kind_, r, "gives a tensor, another rank rows");
    require_whole(r, value(r, i));
  });
}

local::rows_of_ranks letters_plan::rows_of(std::size_t i) const {
  rows_.assign(size(), std::nullopt);
  for_each_rank(values_[i].givers, [&](std::size_t r) {
    const auto& v = value(r, i);
    rows_[r] = local::rows_view{letters_[r].rows(v), v.height,
                                v.axes > 0 ? elements(r, i) : nullptr,
                                v.extents(), v.type};
  });
  return rows_;
}

// -- layouts ------------------------------------------------------------------

bool letters_plan::needs_plain() const noexcept {
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

std::size_t letters_plan::ranks_to_convert() const noexcept {
  return static_cast<std::size_t>(
    std::ranges::count_if(letters_, [](const letter_view& letter) {
      return std::ranges::any_of(
        letter.values(), [](const letter_value& v) { return v.layout != 0; });
    }));
}

} // namespace troupe::comm

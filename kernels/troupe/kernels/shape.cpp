// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/shape.hpp>

#include <algorithm>

namespace troupe {

namespace {

std::int64_t product(const shape& of, std::span<const std::int64_t> extents) {
  std::int64_t result = 1;
  bool overflow = false;
  bool empty = false;
  for (auto extent : extents) {
    if (extent < 0)
      throw error(errc::invalid_argument,
                  "the shape " + to_string(of) + " has an unknown extent");
    empty = empty || extent == 0;
    overflow |= __builtin_mul_overflow(result, extent, &result);
  }
  if (empty)
    return 0;
  if (overflow)
    throw error(errc::invalid_argument,
                "the shape " + to_string(of) + " has more than 2^63 elements");
  return result;
}

} // namespace

shape::shape(std::initializer_list<std::int64_t> dims)
  : shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}

shape::shape(std::span<const std::int64_t> dims) : rank_(dims.size()) {
  if (dims.size() > max_rank)
    throw error(errc::invalid_argument,
                "a tensor of rank " + std::to_string(dims.size()) + "; at most "
                  + std::to_string(max_rank) + " is possible");
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

std::int64_t shape::dim(int axis) const {
  auto index = axis < 0 ? axis + static_cast<std::int64_t>(rank_) : axis;
  if (index < 0 || index >= static_cast<std::int64_t>(rank_))
    throw error(errc::out_of_range, "axis " + std::to_string(axis)
                                      + " of the shape " + to_string(*this));
  return dims_[static_cast<std::size_t>(index)];
}

std::int64_t shape::numel() const {
  return product(*this, dims());
}

std::int64_t shape::numel(std::size_t first, std::size_t last) const {
  if (first > last || last > rank_)
    throw error(errc::out_of_range, "axes [" + std::to_string(first) + ", "
                                      + std::to_string(last) + ") of the shape "
                                      + to_string(*this));
  return product(*this, dims().subspan(first, last - first));
}

bool shape::has_unknown() const noexcept {
  return std::find(begin(), end(), -1) != end();
}

bool operator==(const shape& a, const shape& b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string to_string(const shape& s) {
  std::string text = "[";
  for (auto extent : s) {
    if (text.size() > 1)
      text += ", ";
    text += std::to_string(extent);
  }
  return text + "]";
}

} // namespace troupe

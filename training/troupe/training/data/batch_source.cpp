// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data/batch_source.hpp>

#include <troupe/base/error.hpp>

#include <string>

namespace troupe {

namespace {

bool fits(const feed_info& feed, const shape& given) {
  const shape& wanted = feed.dims;
  if (wanted.rank() != given.rank())
    return false;
  for (std::size_t axis = feed.whole ? 0 : 1; axis < wanted.rank(); ++axis)
    if (wanted[axis] >= 0 && wanted[axis] != given[axis])
      return false;
  return true;
}

/// The indices of element number `flat`: "[17, 0]".
std::string position(const shape& dims, std::int64_t flat) {
  shape place = dims;
  for (std::size_t axis = dims.rank(); axis-- > 0; flat /= dims[axis])
    place[axis] = flat % dims[axis];
  return to_string(place);
}

template <class T>
void check_range_of(const feed_info& feed, const tensor& values,
                    const std::string& file) {
  const auto all = values.values<T>();
  const auto below = static_cast<T>(*feed.below);
  for (std::size_t i = 0; i < all.size(); ++i)
    if ((all[i] < 0 || all[i] >= below) && feed.ignored != all[i])
      throw error(errc::out_of_range,
                  file + ": " + feed.name + " "
                    + position(values.dims(), static_cast<std::int64_t>(i))
                    + " is " + std::to_string(all[i]) + ", outside [0, "
                    + std::to_string(*feed.below) + ")",
                  {.variable = feed.name});
}

} // namespace

void check_feed(const feed_info& feed, dtype type, const shape& dims,
                const std::string& file) {
  const auto complain = [&](errc code) {
    throw error(code,
                file + ": feed " + to_string(feed) + " cannot be "
                  + std::string(to_string(type)) + " " + to_string(dims),
                {.variable = feed.name});
  };
  if (type != feed.type)
    complain(errc::dtype_mismatch);
  const bool number = feed.persistable && !feed.dims.has_unknown()
                      && feed.dims.numel() == 1 && dims.numel() == 1;
  if (!number && !fits(feed, dims))
    complain(errc::shape_mismatch);
}

void check_range(const feed_info& feed, const tensor& values,
                 const std::string& file) {
  if (!feed.below || values.numel() == 0)
    return;
  if (feed.type == dtype::int64)
    check_range_of<std::int64_t>(feed, values, file);
  else if (feed.type == dtype::int32)
    check_range_of<std::int32_t>(feed, values, file);
}

} // namespace troupe

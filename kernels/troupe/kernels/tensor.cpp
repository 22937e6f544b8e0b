// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/tensor.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

namespace troupe {

namespace {

/// An empty tensor takes no memory, whatever its other extents. But kernels add
/// and multiply them, so they are limited.
void check_empty(const shape& dims) {
  constexpr auto most = std::int64_t{1} << 40;
  std::int64_t product = 1;
  for (const auto extent : dims)
    if (__builtin_mul_overflow(product, std::max<std::int64_t>(extent, 1),
                               &product)
        || product > most)
      throw error(errc::invalid_argument,
                  "an empty tensor " + to_string(dims)
                    + " with extents of more than 2^40 beside the 0");
}

std::size_t plain_bytes(const shape& dims, dtype type) {
  auto count = static_cast<std::size_t>(dims.numel());
  if (count == 0)
    check_empty(dims);
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size_of(type), &bytes))
    throw error(errc::invalid_argument,
                "a tensor " + to_string(dims) + " of more than 2^64 bytes");
  return bytes;
}

template <class T>
constexpr bool is_half =
  std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// As static_cast, but defined for every value.
template <class To>
To saturate(double value) noexcept {
  using limits = std::numeric_limits<To>;
  if (value != value)
    return 0;
  if (value <= static_cast<double>(limits::min()))
    return limits::min();
  if (value >= static_cast<double>(limits::max()))
    return limits::max();
  return static_cast<To>(value);
}

template <class To, class From>
To convert(From value) noexcept {
  if constexpr (is_half<From>)
    return convert<To>(static_cast<float>(value));
  else if constexpr (is_half<To>)
    return To{static_cast<float>(value)};
  else if constexpr (std::is_same_v<To, bool>)
    return value != From{0};
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    return saturate<To>(static_cast<double>(value));
  else
    return static_cast<To>(value);
}

template <class From, class To>
void convert_all(const tensor& source, tensor& target) {
  auto from = source.values<From>();
  auto to = target.values<To>();
  for (std::size_t i = 0; i < from.size(); ++i)
    to[i] = convert<To>(from[i]);
}

// Calls `use` with a value of the C++ type of `type`.
template <class Use>
void with_type(dtype type, Use use) {
  switch (type) {
  case dtype::float32: return use(float{});
  case dtype::float64: return use(double{});
  case dtype::float16: return use(float16{});
  case dtype::bfloat16: return use(bfloat16{});
  case dtype::int8: return use(std::int8_t{});
  case dtype::uint8: return use(std::uint8_t{});
  case dtype::int16: return use(std::int16_t{});
  case dtype::int32: return use(std::int32_t{});
  case dtype::int64: return use(std::int64_t{});
  case dtype::boolean: return use(bool{});
  }
}

} // namespace

tensor::tensor(troupe::shape dims, troupe::dtype type, buffer memory,
               std::shared_ptr<const layout> format)
  : dims_(dims), type_(type), memory_(std::move(memory)),
    format_(std::move(format)) {
  if (memory_.capacity() < bytes_of_value())
    throw error(errc::invalid_argument,
                "a tensor " + to_string(dims_) + " of "
                  + std::string(to_string(type_)) + " in a buffer of "
                  + std::to_string(memory_.capacity()) + " bytes");
}

tensor tensor::make(arena& memory, const troupe::shape& dims,
                    troupe::dtype type) {
  return {dims, type, memory.allocate(plain_bytes(dims, type))};
}

tensor tensor::over(std::span<const std::byte> elements,
                    const troupe::shape& dims, troupe::dtype type,
                    std::function<void()> given_back) {
  if (const auto expected = plain_bytes(dims, type);
      elements.size() != expected)
    throw error(errc::invalid_argument,
                "a tensor " + to_string(dims) + " has "
                  + std::to_string(dims.numel()) + " elements, but "
                  + std::to_string(elements.size() / size_of(type))
                  + " are given");
  // Shared memory is not written, so the elements stay constant.
  auto* const memory = const_cast<std::byte*>(elements.data());
  return tensor{dims, type,
                lend(memory, elements.size(), std::move(given_back))}
    .share();
}

std::size_t tensor::bytes() const {
  return is_nothing() ? 0 : bytes_of_value();
}

std::size_t tensor::bytes_of_value() const {
  return format_ ? format_->bytes() : plain_bytes(dims_, type_);
}

void tensor::refuse_type(troupe::dtype asked) const {
  throw error(errc::dtype_mismatch, "a tensor " + to_string(dims_) + " of "
                                      + std::string(to_string(type_))
                                      + " has no elements of "
                                      + std::string(to_string(asked)));
}

void tensor::refuse_layout() const {
  throw error(errc::invalid_argument, "a tensor " + to_string(dims_)
                                        + " in the layout " + format_->name()
                                        + ", expected a plain one");
}

tensor tensor::reshaped(const troupe::shape& dims) const {
  if (!is_plain())
    throw error(errc::shape_mismatch, "a tensor in the layout "
                                        + format_->name()
                                        + " cannot be reshaped");
  if (dims.numel() != numel())
    throw error(errc::shape_mismatch, "a tensor " + to_string(dims_)
                                        + " cannot be reshaped to "
                                        + to_string(dims));
  if (dims.numel() == 0)
    check_empty(dims);
  auto result = *this;
  if (dims.rank() == 0 || dims_.rank() == 0 || dims[0] != dims_[0])
    result.levels_.reset();
  result.dims_ = dims;
  return result;
}

tensor tensor::rows(std::int64_t first, std::int64_t count) const {
  check_plain();
  if (dims_.rank() == 0 || first < 0 || count < 0 || first + count > dims_[0])
    throw error(errc::out_of_range, "rows " + std::to_string(first) + " to "
                                      + std::to_string(first + count)
                                      + " of a tensor " + to_string(dims_));
  tensor part = *this;
  part.levels_.reset();
  part.dims_[0] = count;
  const auto row = static_cast<std::size_t>(dims_.numel(1, dims_.rank()));
  part.offset_ += static_cast<std::size_t>(first) * row * size_of(type_);
  return part;
}

std::int64_t tensor::num_samples() const {
  if (is_nothing())
    return 0;
  if (levels_)
    return num_sequences(*levels_);
  return dims_.rank() == 0 ? 1 : dims_[0];
}

tensor tensor::samples(std::int64_t first, std::int64_t count) const {
  if (!levels_)
    return rows(first, count);
  auto part = slice_lod(*levels_, first, count);
  auto result = rows(part.first_row, part.last_row - part.first_row);
  result.levels_ = std::make_shared<const lod>(std::move(part.levels));
  return result;
}

tensor tensor::share() const {
  if (memory_)
    memory_.block()->shared.store(true, std::memory_order_relaxed);
  return *this;
}

bool tensor::is_shared() const noexcept {
  return memory_ && memory_.block()->shared.load(std::memory_order_relaxed);
}

tensor clone(const tensor& source, arena& memory) {
  if (!source && source.is_plain())
    return {};
  auto copy = tensor::make(memory, source.dims(), source.type());
  if (!source.is_plain())
    source.format()->to_plain(source, copy, nullptr);
  else if (auto bytes = source.bytes())
    std::memcpy(copy.raw(), source.raw(), bytes);
  copy.set_levels(source.levels());
  return copy;
}

tensor cast(const tensor& source, dtype type, arena& memory) {
  if (!source && source.is_plain())
    return {};
  if (source.type() == type)
    return clone(source, memory);
  auto result = tensor::make(memory, source.dims(), type);
  result.set_levels(source.levels());
  with_type(source.type(), [&](auto from) {
    with_type(type, [&](auto to) {
      convert_all<decltype(from), decltype(to)>(source, result);
    });
  });
  return result;
}

} // namespace troupe

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/dtype.hpp>
#include <troupe/kernels/lod.hpp>
#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/shape.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace troupe {

class stream;
class tensor;

/// How a tensor's elements are arranged in memory, for example a oneDNN blocked
/// format. Only the kernels of one library know the details. The layers graph,
/// actors and comm pass layouts on without looking inside. A null layout means
/// plain row-major.
class layout {
public:
  virtual ~layout() = default;
  /// Bytes that a tensor of this layout occupies, including padding.
  virtual std::size_t bytes() const noexcept = 0;
  /// True if `other` is the same layout.
  virtual bool equals(const layout& other) const noexcept = 0;
  /// True if the layout only permutes the elements of the plain tensor: same
  /// dtype, no padding. Elementwise code can then treat tensors of the same
  /// layout as plain.
  virtual bool is_permutation() const noexcept { return false; }
  /// Name for display, e.g. "nChw16c".
  virtual std::string name() const = 0;
  /// Copies the elements of `source`, a tensor of this layout, to `target`, a
  /// plain tensor with the same dims and dtype in device-writable memory. The
  /// copy is queued on `queue`. If `queue` is null, it is complete on return.
  virtual void to_plain(const tensor& source, tensor& target,
                        stream* queue) const = 0;
};

/// A value: shape, dtype, layout and memory. Copies share memory. Invariant: a
/// plain tensor is contiguous and row-major, and its buffer holds at least
/// numel * size_of(dtype) bytes from `data()` on.
///
/// A default-constructed tensor has no value, although its dims are those of a
/// scalar. It has no elements, no bytes and no samples.
class tensor {
public:
  tensor() = default; ///< no memory; `operator bool` is false
  /// Throws error(invalid_argument) if the value does not fit into `memory`.
  tensor(troupe::shape dims, troupe::dtype type, buffer memory,
         std::shared_ptr<const layout> format = nullptr);

  /// Makes a plain tensor in memory from `memory`; contents are undefined.
  static tensor make(arena& memory, const troupe::shape& dims,
                     troupe::dtype type);

  /// Makes a plain tensor of elements in the application's host memory, which
  /// are not copied. It counts as shared: kernels write nothing there. Throws
  /// error(invalid_argument) if the number of elements is not that of the
  /// shape.
  /// @param given_back is called once, by whichever thread lets go of the last
  ///   tensor on the memory; until then the elements must stay as they are. It
  ///   must be short and must not throw. It is not called if `over` throws
  template <class T>
  static tensor over(std::span<const T> elements, const troupe::shape& dims,
                     std::function<void()> given_back = {}) {
    return over(std::as_bytes(elements), dims, dtype_of<T>,
                std::move(given_back));
  }

  explicit operator bool() const noexcept { return static_cast<bool>(memory_); }
  /// Extents; those of a scalar for a default-constructed tensor.
  const troupe::shape& dims() const noexcept { return dims_; }
  /// Element type; float32 for a default-constructed tensor.
  troupe::dtype type() const noexcept { return type_; }
  /// Number of elements; 0 for a default-constructed tensor.
  std::int64_t numel() const { return is_nothing() ? 0 : dims_.numel(); }
  /// Size in bytes: format()->bytes(), or numel * size_of(type) for a plain
  /// tensor.
  std::size_t bytes() const;
  /// The layout; null: plain, row-major.
  const std::shared_ptr<const layout>& format() const noexcept {
    return format_;
  }
  /// True if the elements are row-major without padding.
  bool is_plain() const noexcept { return format_ == nullptr; }
  /// The memory that contains the value. The value may be only a part of it.
  const buffer& memory() const noexcept { return memory_; }
  /// How the rows form sequences; null if they form none.
  const shared_lod& levels() const noexcept { return levels_; }
  /// Sets the levels, which must fit the rows (see `check_lod`). Null removes
  /// them.
  void set_levels(shared_lod levels) noexcept { levels_ = std::move(levels); }

  ///@{
  /// First element. Throws error(dtype_mismatch) unless `T` is the dtype's
  /// type.
  template <class T>
  const T* data() const {
    check_type<T>();
    return reinterpret_cast<const T*>(raw());
  }
  template <class T>
  T* data() {
    check_type<T>();
    return reinterpret_cast<T*>(raw());
  }
  ///@}
  ///@{
  /// All elements of a plain tensor. Throws as `data` does, and
  /// error(invalid_argument) for any other layout.
  template <class T>
  std::span<const T> values() const {
    check_plain();
    return {data<T>(), static_cast<std::size_t>(numel())};
  }
  template <class T>
  std::span<T> values() {
    check_plain();
    return {data<T>(), static_cast<std::size_t>(numel())};
  }
  ///@}
  ///@{
  /// First byte of the value, in its layout; null without memory.
  const std::byte* raw() const noexcept { return memory_.data() + offset_; }
  std::byte* raw() noexcept { return memory_.data() + offset_; }
  ///@}

  /// Returns a plain tensor with another shape of the same numel on the same
  /// memory. Levels are kept if the number of rows does not change. Throws
  /// error(shape_mismatch).
  tensor reshaped(const troupe::shape& dims) const;

  /// Returns rows [first, first + count) along axis 0, on the same memory and
  /// without levels. Throws error(out_of_range), and error(invalid_argument)
  /// unless the tensor is plain.
  tensor rows(std::int64_t first, std::int64_t count) const;

  /// Number of samples: outermost sequences if the tensor has levels, otherwise
  /// rows.
  std::int64_t num_samples() const;
  /// Returns samples [first, first + count), on the same memory and with their
  /// levels. Throws as `rows` does.
  tensor samples(std::int64_t first, std::int64_t count) const;

  /// Returns a handle on this memory for a second variable. It marks the memory
  /// as shared, so kernels no longer write it in place.
  tensor share() const;
  /// True if `share` was called for this memory.
  bool is_shared() const noexcept;

private:
  static tensor over(std::span<const std::byte> elements,
                     const troupe::shape& dims, troupe::dtype type,
                     std::function<void()> given_back);
  /// Inline, because kernels call it for each op: one comparison if the type is
  /// right.
  template <class T>
  void check_type() const {
    static_assert(dtype_of<T> != troupe::dtype(255),
                  "no dtype has elements of this type");
    if (type_ != dtype_of<T>)
      refuse_type(dtype_of<T>);
  }
  /// True if the tensor has neither memory nor a layout; only a value of zero
  /// bytes has a layout without memory.
  bool is_nothing() const noexcept { return !memory_ && !format_; }
  void check_plain() const {
    if (!is_plain())
      refuse_layout();
  }
  std::size_t bytes_of_value() const;
  [[noreturn]] void refuse_type(troupe::dtype asked) const;
  [[noreturn]] void refuse_layout() const;

  troupe::shape dims_;
  troupe::dtype type_ = dtype::float32;
  buffer memory_;
  std::size_t offset_ = 0; // bytes from the start of the memory
  std::shared_ptr<const layout> format_;
  shared_lod levels_;
};

/// Returns a deep, plain copy of a tensor of any layout, including its levels.
/// `source` and `memory` are host memory.
tensor clone(const tensor& source, arena& memory);

/// Converts the elements of a plain host tensor as a C++ static_cast would:
/// float16 and bfloat16 through float, and to boolean by `!= 0`. Where
/// static_cast is undefined, a floating-point value outside the integer's range
/// is clamped to the range and NaN becomes 0. Levels are kept.
tensor cast(const tensor& source, dtype type, arena& memory);

} // namespace troupe

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/dtype.hpp>
#include <troupe/kernels/lod.hpp>
#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/shape.hpp>

#include <memory>
#include <span>
#include <string>

namespace troupe {

class stream;
class tensor;

/// How a tensor's elements lie in memory, known only to the kernels of one
/// library (a oneDNN blocked format, a CUDA tensor format). Graph, actors and
/// comm carry it and never look inside; a null layout is plain row-major.
class layout {
public:
  virtual ~layout() = default;
  /// Bytes that a tensor of this layout takes, padding included.
  virtual std::size_t bytes() const noexcept = 0;
  /// Whether tensors of `other` lie in the same way.
  virtual bool equals(const layout& other) const noexcept = 0;
  /// Whether the elements are those of the plain tensor, of its dtype, in
  /// another order and without padding. Who treats each element alike may then
  /// take tensors of one layout for plain ones.
  virtual bool is_permutation() const noexcept { return false; }
  /// For people: "nChw16c".
  virtual std::string name() const = 0;
  /// Copies the elements of `source`, a tensor of this layout, to `target`, a
  /// plain tensor of the same dims and dtype in memory that the device can
  /// write. The copy is queued on `queue`; null: it is there at return.
  virtual void to_plain(const tensor& source, tensor& target,
                        stream* queue) const = 0;
};

/// A value: shape, dtype, layout and shared memory. Copies share memory.
/// Invariant: a plain tensor is contiguous, row-major, and its buffer holds at
/// least numel * size_of(dtype) bytes from `data()` on.
///
/// A default tensor is no value, although its dims are those of a scalar: it
/// has no elements, bytes and samples, and its copies are such tensors too.
class tensor {
public:
  tensor() = default; ///< no memory; `operator bool` is false
  /// Throws error(invalid_argument) if the value does not fit into `memory`.
  tensor(troupe::shape dims, troupe::dtype type, buffer memory,
         std::shared_ptr<const layout> format = nullptr);

  /// A plain tensor with memory of `memory`; contents undefined.
  static tensor make(arena& memory, const troupe::shape& dims,
                     troupe::dtype type);

  explicit operator bool() const noexcept { return static_cast<bool>(memory_); }
  /// Extents; those of a scalar for a default tensor.
  const troupe::shape& dims() const noexcept { return dims_; }
  /// What its elements are; float32 for a default tensor.
  troupe::dtype type() const noexcept { return type_; }
  /// Elements of the value; 0 of a default tensor.
  std::int64_t numel() const { return is_nothing() ? 0 : dims_.numel(); }
  /// Bytes of the value: layout().bytes() or numel * size_of(type).
  std::size_t bytes() const;
  /// How the elements lie; null: plain, row-major.
  const std::shared_ptr<const layout>& format() const noexcept {
    return format_;
  }
  /// Whether the elements lie row-major, without padding.
  bool is_plain() const noexcept { return format_ == nullptr; }
  /// The memory that the value lies in, of which it may be a part.
  const buffer& memory() const noexcept { return memory_; }
  /// How the rows form sequences; null where they form none.
  const shared_lod& levels() const noexcept { return levels_; }
  /// `levels` fit the rows (`check_lod`); null takes them away.
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
  /// error(invalid_argument) in any other layout.
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

  /// The same memory under another shape of equal numel (plain tensors only),
  /// with the same levels if the number of rows stays. Throws
  /// error(shape_mismatch).
  tensor reshaped(const troupe::shape& dims) const;

  /// Rows [first, first + count) along axis 0, on the same memory, without
  /// levels. Throws error(out_of_range), and error(invalid_argument) unless the
  /// tensor is plain.
  tensor rows(std::int64_t first, std::int64_t count) const;

  /// How many samples the tensor holds: its outermost sequences, or rows.
  std::int64_t num_samples() const;
  /// Samples [first, first + count), on the same memory, with the levels that
  /// concern them. Throws as `rows` does.
  tensor samples(std::int64_t first, std::int64_t count) const;

  /// Another handle on this memory for a second variable: marks the memory as
  /// shared, after which kernels write elsewhere instead of in place.
  tensor share() const;
  /// Whether `share` was called for this memory.
  bool is_shared() const noexcept;

private:
  /// A comparison where the type is right: kernels ask for each op.
  template <class T>
  void check_type() const {
    static_assert(dtype_of<T> != troupe::dtype(255),
                  "no dtype has elements of this type");
    if (type_ != dtype_of<T>)
      refuse_type(dtype_of<T>);
  }
  /// Neither memory nor the layout of a value that needs none.
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

/// A deep, plain copy in `memory`, levels included, of a tensor in any layout.
/// Both are in host memory.
tensor clone(const tensor& source, arena& memory);

/// Converts elements as a C++ static_cast would (float16 and bfloat16 through
/// float; to boolean: != 0); where that is undefined, a floating value outside
/// the integer's range gives the nearest end of the range and NaN gives 0.
/// Levels stay. Host memory, plain.
tensor cast(const tensor& source, dtype type, arena& memory);

} // namespace troupe

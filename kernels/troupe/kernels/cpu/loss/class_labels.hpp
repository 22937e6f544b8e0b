// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/arguments.hpp>

#include <cmath>
#include <cstdint>
#include <string_view>

namespace troupe::cpu {

/// The classes of lines (o, i) of scores around the class axis: one per line
/// or, with soft labels, a distribution of the scores' shape.
class class_labels {
public:
  /// Reads the attributes `soft_label`, `ignore_index` and `axis`.
  explicit class_labels(const attribute_map& attributes)
    : soft_(attributes.get_bool("soft_label", false)),
      ignored_(attributes.get_int("ignore_index", -100)),
      axis_(attributes.get_int("axis", -1)) {}

  bool soft() const noexcept { return soft_; }
  bool ignores(std::int64_t label) const noexcept { return label == ignored_; }

  /// The class axis of `scores`. Throws error(shape_mismatch) for a scalar and
  /// error(out_of_range) for an axis that it lacks.
  std::size_t axis_of(std::string_view slot, const shape& scores) const;
  /// The shape of one value per line: the scores' with extent 1 at the class
  /// axis.
  shape line_dims(std::string_view slot, const shape& scores) const;

  /// Input Label, one class per line. Throws error(shape_mismatch |
  /// dtype_mismatch), and error(out_of_range) for a label that is neither a
  /// class nor ignored.
  index_values hard(const tensor& label, std::string_view slot,
                    const shape& scores) const;
  /// Throws error(shape_mismatch | dtype_mismatch) unless `label` holds
  /// distributions for scores of `dims` and `type`.
  void require_soft(const tensor& label, std::string_view slot,
                    const shape& scores, dtype type) const;

private:
  bool soft_;
  std::int64_t ignored_;
  std::int64_t axis_;
};

/// Paddle's loss for probability p: -log(p), at most 1e20.
template <class T>
T negative_log(T p) {
  const T value = -std::log(p);
  return std::isinf(value) ? std::copysign(T(1e20), value) : value;
}

} // namespace troupe::cpu

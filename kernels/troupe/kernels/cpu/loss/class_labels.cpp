// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/loss/class_labels.hpp>

#include <troupe/base/error.hpp>

#include <string>

namespace troupe::cpu {

std::size_t class_labels::axis_of(std::string_view slot,
                                  const shape& scores) const {
  if (scores.rank() == 0)
    throw_shape(slot, scores, "expected an axis of classes");
  return normal_axis(axis_, scores.rank(), slot);
}

shape class_labels::line_dims(std::string_view slot,
                              const shape& scores) const {
  shape dims = scores;
  dims[axis_of(slot, scores)] = 1;
  return dims;
}

index_values class_labels::hard(const tensor& label, std::string_view slot,
                                const shape& scores) const {
  const std::int64_t lines = line_dims(slot, scores).numel();
  const std::int64_t classes = scores[axis_of(slot, scores)];
  if (label.numel() != lines)
    throw_shapes("Label", label.dims(), slot, scores,
                 "expected one label per row");
  const index_values values(label, "Label");
  for (std::int64_t i = 0; i < lines; ++i)
    if (!ignores(values[i]) && (values[i] < 0 || values[i] >= classes))
      throw error(errc::out_of_range, "label " + std::to_string(values[i])
                                        + " of " + std::to_string(classes)
                                        + " classes");
  return values;
}

void class_labels::require_soft(const tensor& label, std::string_view slot,
                                const shape& scores, dtype type) const {
  require_type("soft Label", label.type(), type);
  if (!(label.dims() == scores))
    throw_shapes("Label", label.dims(), slot, scores,
                 "soft labels need the same shape");
}

} // namespace troupe::cpu

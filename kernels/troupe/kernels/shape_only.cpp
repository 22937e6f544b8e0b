// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/shape_only.hpp>

#include <troupe/base/error.hpp>

#include <memory>
#include <string>

namespace troupe {

namespace {

class no_elements final : public layout {
public:
  std::size_t bytes() const noexcept override { return 0; }
  bool equals(const layout& other) const noexcept override {
    return dynamic_cast<const no_elements*>(&other) != nullptr;
  }
  std::string name() const override { return std::string{shape_only_layout}; }
  void to_plain(const tensor& source, tensor&, stream*) const override {
    throw error(errc::kernel_failure,
                "only the shape " + to_string(source.dims())
                  + " of this value is kept, its elements are read");
  }
};

} // namespace

tensor shape_only(const shape& dims, dtype type) {
  // Never destroyed: an executor in static storage reads it at exit.
  static const auto& format = *new auto(std::make_shared<const no_elements>());
  return {dims, type, buffer{}, format};
}

tensor shape_only(const tensor& like) {
  auto result = shape_only(like.dims(), like.type());
  result.set_levels(like.levels());
  return result;
}

bool is_shape_only(const tensor& value) noexcept {
  return dynamic_cast<const no_elements*>(value.format().get()) != nullptr;
}

shape input_shape(const kernel_context& ctx, std::string_view slot,
                  std::size_t index) {
  const auto& var = ctx.input_variable(slot, index);
  return var.is_tensor() ? var.as_tensor().dims()
                         : ctx.input(slot, index).dims();
}

} // namespace troupe

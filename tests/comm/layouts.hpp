// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/variable.hpp>

#include <memory>
#include <string>

/// Tensors in another layout, for tests of several groups.
namespace comm_test {

using namespace troupe;

/// Transposes a matrix: a layout that permutes elements.
class transposed final : public layout {
public:
  explicit transposed(shape dims) : dims_(dims) {}
  std::size_t bytes() const noexcept override {
    return static_cast<std::size_t>(dims_.numel()) * sizeof(float);
  }
  bool equals(const layout& other) const noexcept override {
    const auto* same = dynamic_cast<const transposed*>(&other);
    return same && same->dims_ == dims_;
  }
  bool is_permutation() const noexcept override { return true; }
  std::string name() const override { return "transposed"; }
  void to_plain(const tensor& source, tensor& target, stream*) const override {
    for (std::int64_t i = 0; i < dims_[0]; ++i)
      for (std::int64_t j = 0; j < dims_[1]; ++j)
        target.data<float>()[i * dims_[1] + j] =
          source.data<float>()[j * dims_[0] + i];
  }

private:
  shape dims_;
};

/// The numbers 0 to 5 as a matrix.
inline variable counted(arena& memory, bool in_other_layout) {
  auto made = tensor::make(memory, {2, 3}, dtype::float32);
  for (int i = 0; i < 6; ++i)
    made.data<float>()[i] = float(i);
  variable result;
  result.set(in_other_layout ? tensor{made.dims(), made.type(), made.memory(),
                                      std::make_shared<transposed>(made.dims())}
                             : made);
  return result;
}

} // namespace comm_test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/tensor.hpp>

#include <algorithm>
#include <vector>

namespace troupe::test {

/// A layout that keeps float32 elements last first, to stand for the opaque
/// layout of some library.
class reversed_layout final : public layout {
public:
  explicit reversed_layout(std::size_t elements) : elements_(elements) {}

  std::size_t bytes() const noexcept override {
    return elements_ * sizeof(float);
  }
  bool equals(const layout& other) const noexcept override {
    auto* same = dynamic_cast<const reversed_layout*>(&other);
    return same && same->elements_ == elements_;
  }
  std::string name() const override { return "reversed"; }
  void to_plain(const tensor& source, tensor& target, stream*) const override {
    auto* first = source.data<float>();
    std::reverse_copy(first, first + elements_, target.data<float>());
  }

private:
  std::size_t elements_;
};

/// A float32 tensor [n] in that layout whose elements are `values`.
inline tensor make_reversed(arena& memory, std::span<const float> values) {
  tensor result{{static_cast<std::int64_t>(values.size())},
                dtype::float32,
                memory.allocate(values.size_bytes()),
                std::make_shared<reversed_layout>(values.size())};
  std::reverse_copy(values.begin(), values.end(), result.data<float>());
  return result;
}

/// A plain float32 tensor [n].
inline tensor make_floats(arena& memory, std::span<const float> values) {
  auto result = tensor::make(memory, {static_cast<std::int64_t>(values.size())},
                             dtype::float32);
  std::copy(values.begin(), values.end(), result.data<float>());
  return result;
}

/// All elements of a plain float32 tensor.
inline std::vector<float> floats(const tensor& value) {
  auto all = value.values<float>();
  return {all.begin(), all.end()};
}

} // namespace troupe::test

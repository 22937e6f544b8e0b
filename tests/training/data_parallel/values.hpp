// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/io/npz.hpp>
#include <troupe/kernels/tensor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::test {

template <class T = float>
tensor tensor_of(const shape& dims, const std::vector<T>& values) {
  arena memory{make_host_memory_source()};
  tensor made = tensor::make(memory, dims, dtype_of<T>);
  REQUIRE(made.values<T>().size() == values.size());
  std::ranges::copy(values, made.values<T>().begin());
  return made;
}

/// first, first + 1, ...
inline tensor counting(const shape& dims, float first = 0) {
  std::vector<float> values(static_cast<std::size_t>(dims.numel()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = first + static_cast<float>(i);
  return tensor_of(dims, values);
}

inline std::vector<float> values_of(const tensor& t) {
  const auto all = t.values<float>();
  return {all.begin(), all.end()};
}

/// The largest difference of two tensors; infinite if shapes differ.
inline double distance(const tensor& a, const tensor& b) {
  if (!a || !b || !(a.dims() == b.dims()))
    return HUGE_VAL;
  double most = 0;
  for (std::size_t i = 0; i < a.values<float>().size(); ++i)
    most = std::max(most, static_cast<double>(std::abs(
                            a.values<float>()[i] - b.values<float>()[i])));
  return most;
}

/// What PyTorch has computed: see make_values.py.
class torch_values {
public:
  const tensor& operator[](const std::string& name) const {
    const auto found = arrays_.find(name);
    REQUIRE_MESSAGE(found != arrays_.end(), name);
    return found->second;
  }

private:
  arena memory_{make_host_memory_source()};
  named_tensors arrays_ =
    read_npz(TROUPE_TEST_DATA "/data_parallel.npz", memory_);
};

} // namespace troupe::test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/device.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/kernel_options.hpp>
#include <troupe/kernels/lod_sharing.hpp>

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace troupe::test {

/// A fast CPU kernel with its variables held by hand, for tests that look at
/// memory: what is shared, what is written in place.
class hand_run {
public:
  explicit hand_run(std::string type, attribute_map attributes = {},
                    const kernel_options& options = {})
    : attributes_(std::move(attributes)), rule_(lod_rule_of(type)),
      kernel_(cpu_kernels(options).make(type, device_kind::cpu, attributes_)) {}

  variable& input(const char* slot, const shape& dims,
                  const std::vector<float>& values) {
    auto value = tensor::make(device_->memory(), dims, dtype::float32);
    std::copy(values.begin(), values.end(), value.data<float>());
    variables_.emplace_back().set(std::move(value));
    return input(slot, variables_.back());
  }

  variable& labels(const char* slot, const shape& dims,
                   const std::vector<std::int64_t>& values) {
    auto value = tensor::make(device_->memory(), dims, dtype::int64);
    std::copy(values.begin(), values.end(), value.data<std::int64_t>());
    variables_.emplace_back().set(std::move(value));
    return input(slot, variables_.back());
  }

  variable& rows(const char* slot, std::int64_t height,
                 std::vector<std::int64_t> rows, std::int64_t width,
                 const std::vector<float>& values) {
    const auto count = static_cast<std::int64_t>(rows.size());
    auto value =
      tensor::make(device_->memory(), {count, width}, dtype::float32);
    std::copy(values.begin(), values.end(), value.data<float>());
    variables_.emplace_back().set(
      selected_rows{std::move(rows), height, std::move(value)});
    return input(slot, variables_.back());
  }

  variable& input(const char* slot, variable& var) {
    inputs_.add({slot, slot, &var});
    return var;
  }

  variable& output(const char* slot) {
    return output(slot, variables_.emplace_back());
  }
  variable& output(const char* slot, variable& var) {
    outputs_.add({slot, slot, &var});
    return var;
  }

  void run(const step_info& step = {}) {
    kernel_context ctx(*device_, nullptr, attributes_, inputs_, outputs_, step);
    run_kernel(*kernel_, rule_, ctx);
  }

  /// Of all values and what the kernel takes besides.
  std::size_t peak_bytes() const { return device_->memory().peak_bytes(); }

private:
  attribute_map attributes_;
  lod_rule rule_;
  std::unique_ptr<device> device_ = make_cpu_device(0);
  std::unique_ptr<kernel> kernel_;
  std::deque<variable> variables_;
  argument_list inputs_;
  argument_list outputs_;
};

inline std::vector<float> elements(const variable& var) {
  const auto all = var.as_tensor().values<float>();
  return {all.begin(), all.end()};
}

inline const std::byte* memory_of(const variable& var) {
  return var.as_tensor().raw();
}

} // namespace troupe::test

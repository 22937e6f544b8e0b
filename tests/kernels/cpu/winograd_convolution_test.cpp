// SPDX-License-Identifier: Apache-2.0
// Convolutions of so many channels that Winograd's method computes them in
// parts.
#include "blocked_images.hpp"

#include <troupe/kernels/cpu_kernel_options.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>
#include <vector>

namespace troupe::test {

namespace {

const shape images{32, 512, 4, 4};
const shape filters{512, 512, 3, 3};

/// A convolution and its gradient on one device.
class wide_convolution {
public:
  explicit wide_convolution(const kernel_table& table) : table_(table) {
    attributes_.set("paddings", std::vector<std::int32_t>{1, 1});
  }

  /// Output, Input@GRAD, Filter@GRAD, one behind the other.
  std::vector<float> run() {
    variable& x = values(images, 13);
    variable& w = values(filters, 7);
    variable& dout = values(images, 11);
    variable& out = variables_.emplace_back();
    variable& dx = variables_.emplace_back();
    variable& dw = variables_.emplace_back();
    run("conv2d", {{"Input", "x", &x}, {"Filter", "w", &w}},
        {{"Output", "out", &out}});
    run("conv2d_grad",
        {{"Input", "x", &x}, {"Filter", "w", &w}, {"Output@GRAD", "d", &dout}},
        {{"Input@GRAD", "dx", &dx}, {"Filter@GRAD", "dw", &dw}});
    std::vector<float> all;
    for (const auto* v : {&out, &dx, &dw}) {
      const tensor plain = device_->to_host(v->as_tensor(), device_->memory());
      const auto elements = plain.values<float>();
      all.insert(all.end(), elements.begin(), elements.end());
    }
    return all;
  }

  std::size_t peak_bytes() const { return device_->memory().peak_bytes(); }

private:
  variable& values(const shape& dims, std::int64_t period) {
    auto value = tensor::make(device_->memory(), dims, dtype::float32);
    std::int64_t i = 0;
    for (float& v : value.values<float>())
      v = static_cast<float>(i++ * 37 % period - period / 2) * 0.125f;
    variables_.emplace_back().set(std::move(value));
    return variables_.back();
  }

  void run(const char* type, std::vector<op_argument> inputs,
           std::vector<op_argument> outputs) {
    const step_info step{};
    kernel_context ctx(*device_, nullptr, attributes_, inputs, outputs, step);
    table_.make(type, device_kind::cpu, attributes_)->run(ctx);
  }

  const kernel_table& table_;
  attribute_map attributes_;
  std::unique_ptr<device> device_ = make_cpu_device(0);
  std::deque<variable> variables_;
};

/// The largest difference, in parts of the largest value.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i] - b[i])));
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return most / largest;
}

} // namespace

TEST_SUITE("kernels.cpu.wide_convolution") {
TEST_CASE("parts of a wide convolution give what the direct method gives") {
  const auto direct = cpu_kernels({.winograd = false});
  const auto expected = wide_convolution(direct).run();
  for (const auto& table :
       {cpu_kernels(), with_blocked_inputs(cpu_kernels(), {16})})
    CHECK(difference(wide_convolution(table).run(), expected) < 1e-5);
}

TEST_CASE("a wide convolution takes a bounded amount of memory") {
  const auto table = cpu_kernels();
  wide_convolution op(table);
  op.run();
  // Filters, their gradient and blocks of them, images, 32 MiB of scratch; the
  // transformed filters alone would take as much again.
  CHECK(op.peak_bytes() < 80'000'000);
}
} // TEST_SUITE("kernels.cpu.wide_convolution")

} // namespace troupe::test

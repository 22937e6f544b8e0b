// SPDX-License-Identifier: Apache-2.0

// Collectives of values that are not in plain layout.

#include <troupe/actors/engine/step_state.hpp>
#include <troupe/actors/tasks/op_tasks.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::actors;

TEST_SUITE("actors.collective_task") {

namespace {

/// A layout with the elements in reverse order, `stride` floats apart.
class backwards final : public layout {
public:
  backwards(std::int64_t elements, std::int64_t stride)
    : elements_(elements), stride_(stride) {}

  std::size_t bytes() const noexcept override {
    return static_cast<std::size_t>(elements_ * stride_) * sizeof(float);
  }
  bool equals(const layout& other) const noexcept override {
    const auto* o = dynamic_cast<const backwards*>(&other);
    return o && o->elements_ == elements_ && o->stride_ == stride_;
  }
  bool is_permutation() const noexcept override { return stride_ == 1; }
  std::string name() const override { return "backwards"; }
  void to_plain(const tensor& source, tensor& target, stream*) const override {
    const auto* from = reinterpret_cast<const float*>(source.raw());
    for (std::int64_t i = 0; i < elements_; ++i)
      target.data<float>()[i] = from[at(i)];
  }

  std::int64_t at(std::int64_t i) const {
    return (elements_ - 1 - i) * stride_;
  }

private:
  std::int64_t elements_;
  std::int64_t stride_;
};

constexpr std::int64_t count = 5;

/// An all_reduce over two devices, in place.
class two_devices {
public:
  void put(std::size_t device, float first,
           const std::shared_ptr<const backwards>& format) {
    const auto size = format ? format->bytes()
                             : static_cast<std::size_t>(count) * sizeof(float);
    tensor value{{count},
                 dtype::float32,
                 devices_[device]->memory().allocate(size),
                 format};
    auto* to = reinterpret_cast<float*>(value.memory().data());
    for (std::int64_t i = 0; i < count; ++i)
      to[format ? format->at(i) : i] = first + static_cast<float>(i);
    values_[device].set(std::move(value));
  }

  void add_up() {
    std::vector<storage> both;
    for (std::size_t d = 0; d < 2; ++d)
      both.emplace_back("gradient", devices_[d]->memory(), values_[d]);
    no_completion whole;
    make_collective_task(graph::op_kind::all_reduce, 0,
                         {devices_[0].get(), devices_[1].get()}, {{both, both}},
                         {})
      ->run(step_, whole);
  }

  const tensor& value(std::size_t device) const {
    return values_[device].as_tensor();
  }
  std::vector<float> elements(std::size_t device) {
    auto& on = *devices_[device];
    const auto plain = on.to_host(value(device), on.memory());
    const auto all = plain.values<float>();
    return {all.begin(), all.end()};
  }

private:
  std::unique_ptr<device> devices_[2] = {make_cpu_device(0),
                                         make_cpu_device(1)};
  variable values_[2];
  step_state step_;
};

/// Checks the sums of the two devices' values.
void check_sums(two_devices& two) {
  two.add_up();
  for (const std::size_t device : {0, 1})
    CHECK(two.elements(device) == std::vector<float>{110, 112, 114, 116, 118});
}

} // namespace

TEST_CASE("values in the same permuted layout are reduced in that layout") {
  const auto format = std::make_shared<backwards>(count, 1);
  two_devices two;
  two.put(0, 10, format);
  two.put(1, 100, std::make_shared<backwards>(count, 1));
  check_sums(two);
  for (const std::size_t device : {0, 1})
    CHECK(two.value(device).format() == format);
}

TEST_CASE("values in layouts with gaps are reduced in plain layout") {
  two_devices two;
  for (const std::size_t device : {0, 1})
    two.put(device, device == 0 ? 10.0f : 100.0f,
            std::make_shared<backwards>(count, 2));
  check_sums(two);
  for (const std::size_t device : {0, 1})
    CHECK(two.value(device).is_plain());
}

TEST_CASE("values in different layouts are reduced correctly") {
  two_devices two;
  two.put(0, 10, std::make_shared<backwards>(count, 1));
  two.put(1, 100, nullptr);
  check_sums(two);
}

} // TEST_SUITE("actors.collective_task")

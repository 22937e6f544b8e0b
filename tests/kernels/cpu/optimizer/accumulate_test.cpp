// SPDX-License-Identifier: Apache-2.0
#include <kernels/cpu/hand_run.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/cpu/conv/filter_blocks.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

TEST_SUITE("kernels.cpu.accumulate") {

namespace {

using floats = std::vector<float>;

enum place : unsigned { between = 0, first = 1, last = 2 };

/// The gradient of one device over steps.
class accumulation {
public:
  explicit accumulation(const std::string& unit = "batch_samples")
    : run_{"accumulate", attributes(unit)} {
    run_.input("X", gradient);
    run_.output("Out", gradient);
  }

  void put(const floats& values) {
    const auto count = static_cast<std::int64_t>(values.size());
    auto value = tensor::make(memory_, {count}, dtype::float32);
    std::copy(values.begin(), values.end(), value.data<float>());
    gradient.set(std::move(value));
  }

  void put_rows(const std::vector<std::int64_t>& rows, const floats& values) {
    const auto count = static_cast<std::int64_t>(rows.size());
    const auto width = static_cast<std::int64_t>(values.size()) / count;
    auto held = tensor::make(memory_, {count, width}, dtype::float32);
    std::copy(values.begin(), values.end(), held.data<float>());
    gradient.set(selected_rows{rows, 10, std::move(held)});
  }

  void step(unsigned at, std::int64_t batch, std::int64_t shard = 1) {
    step_info info;
    info.batch_samples = batch;
    info.shard_samples = shard;
    info.begins_update = (at & first) != 0;
    info.ends_update = (at & last) != 0;
    run_.run(info);
  }

  variable gradient;

private:
  static attribute_map attributes(const std::string& unit) {
    attribute_map a;
    a.set("unit", unit);
    return a;
  }

  arena memory_{make_host_memory_source()};
  hand_run run_;
};

} // namespace

TEST_CASE("the last step of an update gives the mean over all samples") {
  accumulation a;
  for (int update = 0; update < 2; ++update) { // the second begins anew
    a.put({1, 10});
    a.step(first, 4);
    CHECK_FALSE(a.gradient.has_value());
    a.put({2, 20});
    a.step(between, 2);
    CHECK_FALSE(a.gradient.has_value());
    a.put({4, 40});
    a.step(last, 2);
    CHECK(elements(a.gradient) == floats{2, 20});
  }
}

TEST_CASE("an update of one step leaves the gradient as it is") {
  accumulation a;
  a.put({3, 7});
  const auto* before = memory_of(a.gradient);
  a.step(first | last, 5);
  CHECK(elements(a.gradient) == floats{3, 7});
  CHECK(memory_of(a.gradient) == before);
}

TEST_CASE("the sum takes the memory of the first gradient") {
  accumulation a;
  a.put({1, 2});
  const auto* memory = memory_of(a.gradient);
  a.step(first, 1);
  a.step(last, 1); // without samples
  CHECK(memory_of(a.gradient) == memory);
  CHECK(elements(a.gradient) == floats{0.5f, 1});
}

TEST_CASE("memory that another variable shares is not written") {
  accumulation a;
  std::vector<variable> others(3);
  std::size_t next = 0;
  for (auto at : {first, between, last}) {
    a.put({1, 2});
    others[next++].set(a.gradient.as_tensor().share());
    a.step(at, at == first ? 1 : 3);
  }
  for (auto& other : others)
    CHECK(elements(other) == floats{1, 2});
  CHECK(elements(a.gradient)[1] == doctest::Approx(2));
}

TEST_CASE("a device without samples adds nothing, whichever its steps are") {
  for (unsigned with = 0; with < 8; ++with) {
    CAPTURE(with);
    accumulation a;
    float expected = 0;
    const std::int64_t samples[] = {2, 5, 1};
    for (unsigned s = 0; s < 3; ++s) {
      if (with & 1u << s) {
        a.put({8});
        expected += 8 * static_cast<float>(samples[s]) / 8;
      }
      a.step((s == 0 ? first : between) | (s == 2 ? last : between),
             samples[s]);
      a.gradient = s < 2 ? variable{} : std::move(a.gradient);
    }
    if (with == 0)
      CHECK_FALSE(a.gradient.has_value());
    else
      CHECK(elements(a.gradient)[0] == doctest::Approx(expected));
  }
}

TEST_CASE("steps count by the samples of the shard, or alike, if asked") {
  for (const auto& [unit, expected] :
       {std::pair{"shard_samples", 3.0f}, std::pair{"steps", 2.0f}}) {
    accumulation a{unit};
    a.put({0});
    a.step(first, 100, 1);
    a.put({4});
    a.step(last, 1, 3);
    CHECK(elements(a.gradient) == floats{expected});
  }
}

TEST_CASE("a shard without samples at first counts from its first samples") {
  accumulation a{"shard_samples"};
  a.step(first, 1, 0);
  a.put({6});
  a.step(between, 4, 2);
  a.put({0});
  a.step(last, 4, 1);
  CHECK(elements(a.gradient) == floats{4});
}

TEST_CASE("rows are joined in the order of steps, weighted by samples") {
  accumulation a;
  a.put_rows({7, 2}, {1, 2, 3, 4});
  a.step(first, 1);
  CHECK_FALSE(a.gradient.has_value());
  a.step(between, 1); // without samples
  a.put_rows({2}, {10, 20});
  a.step(last, 2);
  const auto& rows = a.gradient.as_rows();
  CHECK(rows.rows == std::vector<std::int64_t>{7, 2, 2});
  CHECK(rows.height == 10);
  const auto values = rows.values.values<float>();
  CHECK(floats{values.begin(), values.end()}
        == floats{0.25f, 0.5f, 0.75f, 1, 5, 10});
}

TEST_CASE("rows of earlier steps are given on a device without samples") {
  accumulation a;
  a.put_rows({3}, {8});
  a.step(first, 1);
  a.step(last, 1);
  CHECK(a.gradient.as_rows().rows == std::vector<std::int64_t>{3});
  CHECK(a.gradient.as_rows().values.values<float>()[0] == 4);
}

TEST_CASE("filters in blocks stay in blocks, and plain ones may come later") {
  arena memory{make_host_memory_source()};
  const shape dims{16, 16, 1, 1};
  const auto filter = [&](float value) {
    auto plain = tensor::make(memory, dims, dtype::float32);
    for (auto& element : plain.values<float>())
      element = value += 1;
    return plain;
  };
  const auto in_blocks = [&](const tensor& plain) {
    return cpu::in_filter_blocks(plain, "X", cpu::filter_blocks(dims), memory);
  };
  accumulation a;
  a.gradient.set(in_blocks(filter(0)));
  a.step(first, 1);
  a.gradient.set(in_blocks(filter(2)));
  a.step(last, 1);
  CHECK(cpu::lies_in_filter_blocks(a.gradient.as_tensor()));
  const auto mean = clone(a.gradient.as_tensor(), memory);
  CHECK(mean.values<float>()[5] == filter(1).values<float>()[5]);
  a.gradient.set(in_blocks(filter(0)));
  a.step(first, 1);
  a.gradient.set(filter(2));
  a.step(last, 1);
  CHECK(elements(a.gradient)[200] == filter(1).values<float>()[200]);
}

TEST_CASE("gradients that do not fit those before are refused") {
  for (const bool at_end : {false, true}) {
    const auto second = at_end ? last : between;
    accumulation a;
    a.put({1, 2});
    a.step(first, 1);
    a.put({1, 2, 3});
    CHECK(test::caught([&] { a.step(second, 1); }).code()
          == errc::shape_mismatch);
    a.put({1, 2});
    a.step(first, 1);
    a.put_rows({1}, {1, 2});
    CHECK(test::caught([&] { a.step(second, 1); }).code()
          == errc::kernel_failure);
    a.put_rows({1}, {1, 2}); // two columns
    a.step(first, 1);
    a.put_rows({1}, {1, 2, 3});
    CHECK(test::caught([&] {
            a.step(second, 1);
            a.step(last, 1);
          }).code()
          == errc::shape_mismatch);
    a.put({5, 6}); // the next update works again
    a.step(first | last, 1);
    CHECK(elements(a.gradient) == floats{5, 6});
  }
}

} // TEST_SUITE("kernels.cpu.accumulate")

} // namespace troupe::test

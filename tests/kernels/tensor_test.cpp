// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/tensor.hpp>

#include <kernels/tensors.hpp>
#include <support/caught.hpp>

#include <cmath>
#include <limits>
#include <vector>

namespace troupe {

using test::caught;
using test::floats;
using test::make_floats;
using test::make_reversed;
using test::says;

TEST_SUITE("kernels.tensor") {

namespace {

constexpr int dtype_count = 10;

struct host {
  arena memory{make_host_memory_source()};
};

template <class T>
tensor make_values(arena& memory, std::vector<T> values) {
  auto result = tensor::make(memory, {static_cast<std::int64_t>(values.size())},
                             dtype_of<T>);
  std::copy(values.begin(), values.end(), result.template data<T>());
  return result;
}

// `value` through `first` and then `second`, as a double.
double through(arena& memory, double value, dtype first, dtype second) {
  auto start = make_values<double>(memory, {value});
  auto end = cast(cast(cast(start, first, memory), second, memory),
                  dtype::float64, memory);
  return end.values<double>()[0];
}

bool is_signed(dtype type) {
  return type != dtype::uint8 && type != dtype::boolean;
}

template <class To, class From>
To converted(From value) {
  host cpu;
  auto result =
    cast(make_values<From>(cpu.memory, {value}), dtype_of<To>, cpu.memory);
  return result.template values<To>()[0];
}

} // namespace

TEST_CASE("a tensor over memory of the application gives it back once") {
  const std::vector<std::int64_t> elements{1, 2, 3, 4, 5, 6};
  int given_back = 0;
  {
    auto whole =
      tensor::over<std::int64_t>(elements, {3, 2}, [&] { ++given_back; });
    CHECK(whole.type() == dtype::int64);
    CHECK(whole.data<std::int64_t>() == elements.data());
    CHECK(whole.memory().is_host());
    CHECK(whole.is_shared());
    const auto last = whole.rows(2, 1);
    whole = {};
    CHECK(given_back == 0);
    CHECK(last.values<std::int64_t>()[1] == 6);
    host cpu;
    CHECK_FALSE(cpu.memory.owns(last.memory()));
    CHECK(clone(last, cpu.memory).values<std::int64_t>()[0] == 5);
  }
  CHECK(given_back == 1);
  tensor::over<std::int64_t>(elements, {6}); // nobody is told
}

TEST_CASE("a tensor over too few elements is refused, and nothing given back") {
  const std::vector<float> elements(5);
  bool is_given_back = false;
  const auto failure = caught([&] {
    tensor::over<float>(elements, {3, 2}, [&] { is_given_back = true; });
  });
  CHECK(failure.code() == errc::invalid_argument);
  CHECK(says(failure, "a tensor [3, 2] has 6 elements, but 5 are given"));
  CHECK_FALSE(is_given_back);
}

TEST_CASE("a default tensor has no memory") {
  tensor none;
  CHECK_FALSE(none);
  CHECK_FALSE(none.is_shared());
  CHECK_FALSE(none.share());
}

TEST_CASE("a default tensor holds nothing, and so do its copies") {
  host cpu;
  const tensor none;
  CHECK(none.numel() == 0);
  CHECK(none.bytes() == 0);
  CHECK(none.num_samples() == 0);
  CHECK(none.values<float>().empty());
  CHECK_FALSE(clone(none, cpu.memory));
  CHECK_FALSE(cast(none, dtype::int32, cpu.memory));
  CHECK(caught([&] { none.reshaped({1}); }).code() == errc::shape_mismatch);
  CHECK(caught([&] { none.rows(0, 1); }).code() == errc::out_of_range);
}

TEST_CASE("a tensor whose value was moved away holds nothing") {
  host cpu;
  auto from = tensor::make(cpu.memory, {2, 3}, dtype::float32);
  const auto to = std::move(from);
  CHECK(from.values<float>().empty());
  CHECK(to.values<float>().size() == 6);
}

TEST_CASE("elements of another type than the tensor's are refused") {
  host cpu;
  auto t = tensor::make(cpu.memory, {2, 3}, dtype::float32);
  const auto& constant = t;
  const auto of_values = caught([&] { t.values<int>(); });
  CHECK(of_values.code() == errc::dtype_mismatch);
  CHECK(says(of_values, "a tensor [2, 3] of float32 has no elements of int32"));
  CHECK(caught([&] { constant.values<bool>(); }).code()
        == errc::dtype_mismatch);
  CHECK(caught([&] { t.data<double>(); }).code() == errc::dtype_mismatch);
  CHECK(caught([&] { constant.data<std::int64_t>(); }).code()
        == errc::dtype_mismatch);
}

TEST_CASE("elements and rows of a tensor in a kernel's layout are refused") {
  host cpu;
  auto t = make_reversed(cpu.memory, std::vector<float>{1, 2, 3});
  const auto& constant = t;
  const auto of_values = caught([&] { t.values<float>(); });
  CHECK(of_values.code() == errc::invalid_argument);
  CHECK(says(of_values, t.format()->name()));
  CHECK(caught([&] { constant.values<float>(); }).code()
        == errc::invalid_argument);
  CHECK(caught([&] { t.rows(0, 1); }).code() == errc::invalid_argument);
}

TEST_CASE("a tensor made in an arena is plain and holds its elements") {
  host cpu;
  auto t = tensor::make(cpu.memory, {2, 3}, dtype::int64);
  CHECK(t);
  CHECK(t.dims() == shape{2, 3});
  CHECK(t.type() == dtype::int64);
  CHECK(t.numel() == 6);
  CHECK(t.bytes() == 48);
  CHECK(t.is_plain());
  CHECK(t.values<std::int64_t>().size() == 6);
  CHECK(t.memory().capacity() >= t.bytes());
}

TEST_CASE("a tensor of no elements is a value") {
  host cpu;
  auto t = tensor::make(cpu.memory, {0, 3}, dtype::float32);
  CHECK(t);
  CHECK(t.values<float>().empty());
  CHECK(clone(t, cpu.memory).dims() == shape{0, 3});
  CHECK(cast(t, dtype::int8, cpu.memory).numel() == 0);
}

TEST_CASE("a tensor cannot be larger than its buffer or of unknown shape") {
  host cpu;
  auto small = cpu.memory.allocate(64);
  auto failure = caught([&] { tensor({17}, dtype::float32, small); });
  CHECK(failure.code() == errc::invalid_argument);
  CHECK(says(failure, "[17] of float32 in a buffer of 64 bytes"));
  CHECK(caught([&] {
          tensor::make(cpu.memory, {-1, 2}, dtype::int8);
        }).code()
        == errc::invalid_argument);
  auto big = std::int64_t{1} << 62;
  CHECK(caught([&] { tensor::make(cpu.memory, {big}, dtype::float64); }).code()
        == errc::invalid_argument);
}

TEST_CASE("copies share memory") {
  host cpu;
  auto t = make_floats(cpu.memory, std::vector{1.f, 2.f});
  auto copy = t;
  copy.data<float>()[0] = 5;
  CHECK(floats(t) == std::vector{5.f, 2.f});
  CHECK_FALSE(t.is_shared());
}

TEST_CASE("sharing marks the memory for every handle on it") {
  host cpu;
  auto t = make_floats(cpu.memory, std::vector{1.f});
  auto other = t.share();
  CHECK(t.is_shared());
  CHECK(other.is_shared());
  CHECK(other.raw() == t.raw());
}

TEST_CASE("reshaping keeps memory and elements") {
  host cpu;
  auto t = make_floats(cpu.memory, std::vector{1.f, 2.f, 3.f, 4.f});
  auto square = t.reshaped({2, 2});
  CHECK(square.dims() == shape{2, 2});
  CHECK(square.raw() == t.raw());
  CHECK(t.dims() == shape{4});
}

TEST_CASE("reshaping to another number of elements is an error") {
  host cpu;
  auto t = make_floats(cpu.memory, std::vector{1.f, 2.f, 3.f, 4.f});
  auto failure = caught([&] { t.reshaped({3}); });
  CHECK(failure.code() == errc::shape_mismatch);
  CHECK(says(failure, "[4] cannot be reshaped to [3]"));
}

TEST_CASE("a tensor in a library's layout takes that layout's bytes") {
  host cpu;
  auto t = make_reversed(cpu.memory, std::vector{1.f, 2.f});
  CHECK_FALSE(t.is_plain());
  CHECK(t.bytes() == 8);
  auto failure = caught([&] { t.reshaped({2, 1}); });
  CHECK(failure.code() == errc::shape_mismatch);
  CHECK(says(failure, "reversed"));
}

TEST_CASE("a clone has the same elements in memory of its own") {
  host cpu, other;
  auto t = make_floats(cpu.memory, std::vector{1.f, 2.f}).reshaped({2, 1});
  auto copy = clone(t, other.memory);
  t.data<float>()[0] = 9;
  CHECK(copy.dims() == shape{2, 1});
  CHECK(floats(copy) == std::vector{1.f, 2.f});
  CHECK(other.memory.live_bytes() > 0);
}

TEST_CASE("every dtype casts to every other") {
  host cpu;
  for (int from = 0; from < dtype_count; ++from)
    for (int to = 0; to < dtype_count; ++to)
      for (double value : {0., 1., 3., 100., -7.}) {
        auto first = static_cast<dtype>(from);
        auto second = static_cast<dtype>(to);
        if (value < 0 && !(is_signed(first) && is_signed(second)))
          continue;
        auto truth = first == dtype::boolean || second == dtype::boolean;
        CAPTURE(to_string(first));
        CAPTURE(to_string(second));
        CHECK(through(cpu.memory, value, first, second)
              == (truth ? double(value != 0) : value));
      }
}

TEST_CASE("a cast to the same dtype is a copy in memory of its own") {
  host cpu;
  auto t = make_floats(cpu.memory, std::vector{1.5f});
  auto same = cast(t, dtype::float32, cpu.memory);
  CHECK(same.raw() != t.raw());
  CHECK(floats(same) == std::vector{1.5f});
}

TEST_CASE("casts keep the shape") {
  host cpu;
  auto t = tensor::make(cpu.memory, {2, 0, 3}, dtype::float16);
  CHECK(cast(t, dtype::int32, cpu.memory).dims() == shape{2, 0, 3});
}

TEST_CASE("casts from floating to integer cut towards zero") {
  CHECK(converted<std::int32_t>(-1.7f) == -1);
  CHECK(converted<std::int32_t>(1.7) == 1);
  CHECK(converted<std::uint8_t>(254.9f) == 254);
  CHECK(converted<std::int8_t>(-128.9f) == -128);
  CHECK(converted<std::int64_t>(float16{-2.5f}) == -2);
}

TEST_CASE("casts from floating to integer stop at the ends of the range") {
  CHECK(converted<std::int8_t>(300.f) == 127);
  CHECK(converted<std::int8_t>(-300.f) == -128);
  CHECK(converted<std::uint8_t>(-1.f) == 0);
  CHECK(converted<std::int32_t>(3e9) == 2147483647);
  CHECK(converted<std::int64_t>(1e30f)
        == std::numeric_limits<std::int64_t>::max());
  CHECK(converted<std::int64_t>(-INFINITY)
        == std::numeric_limits<std::int64_t>::min());
  CHECK(converted<std::int16_t>(NAN) == 0);
  CHECK(converted<std::int32_t>(NAN) == 0);
  CHECK(converted<std::int64_t>(float16{NAN}) == 0);
}

TEST_CASE("casts between integers wrap around as static_cast does") {
  CHECK(converted<std::int8_t>(std::int32_t{300}) == 44);
  CHECK(converted<std::uint8_t>(std::int64_t{-1}) == 255);
  CHECK(converted<std::int64_t>(std::int8_t{-5}) == -5);
}

TEST_CASE("anything but zero is true, NaN and small fractions too") {
  CHECK(converted<bool>(0.25f));
  CHECK(converted<bool>(NAN));
  CHECK(converted<bool>(std::int64_t{1} << 40));
  CHECK(converted<bool>(float16{0x1p-24f}));
  CHECK_FALSE(converted<bool>(-0.f));
}

TEST_CASE("casts to 16-bit types round to nearest even") {
  CHECK(converted<float16>(1.f + 0x1p-11f).bits == 0x3c00);
  CHECK(converted<float16>(std::int64_t{100000}).bits == 0x7c00);
  CHECK(converted<bfloat16>(1.f + 0x1p-8f).bits == 0x3f80);
  CHECK(converted<bfloat16>(float16{2.f}).bits == 0x4000);
}

} // TEST_SUITE("kernels.tensor")

} // namespace troupe

// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/fill/philox_uniform.hpp>
#include <troupe/kernels/cpu/product/gemm.hpp>
#include <troupe/kernels/cpu/simd/vector_math.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>
#include <troupe/kernels/random.hpp>

#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace troupe;
using namespace troupe::cpu;

TEST_SUITE("kernels.cpu.vector_math") {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

// Largest error over [low, high], in units of the last place of the result or
// of `floor`, whichever is larger.
template <class Fast, class Exact>
double worst_ulp(float low, float high, double floor, Fast fast, Exact exact) {
  constexpr int steps = 200000;
  double worst = 0.0;
  for (int i = 0; i <= steps; ++i) {
    const float x = low + (high - low) * static_cast<float>(i) / steps;
    const double expected = exact(static_cast<double>(x));
    const double scale =
      std::max(std::abs(expected), floor) * static_cast<double>(0x1p-23f);
    worst = std::max(worst, std::abs(fast(x) - expected) / scale);
  }
  return worst;
}

} // namespace

TEST_CASE("fast_exp is within two units of the last place") {
  const auto exact = [](double x) { return std::exp(x); };
  CHECK(worst_ulp(
          -87.0f, 88.7f, 0.0, [](float x) { return fast_exp(x); }, exact)
        < 2.0);
  CHECK(fast_exp(0.0f) == 1.0f);
}

TEST_CASE("fast_exp keeps the limits of the exponential") {
  CHECK(fast_exp(-infinity) == 0.0f);
  CHECK(fast_exp(-200.0f) == 0.0f);
  CHECK(fast_exp(infinity) == infinity);
  CHECK(fast_exp(89.0f) == infinity);
  CHECK(std::isnan(fast_exp(not_a_number)));
  CHECK(fast_exp(-100.0f) == doctest::Approx(std::exp(-100.0)).epsilon(1e-2));
}

TEST_CASE("fast_log is within two units of the last place") {
  const auto exact = [](double x) { return std::log(x); };
  const auto log = [](float x) { return fast_log(x); };
  CHECK(worst_ulp(1e-3f, 0.9f, 0.0, log, exact) < 2.0);
  CHECK(worst_ulp(0.9f, 1.1f, 0.1, log, exact) < 2.0);
  CHECK(worst_ulp(1.1f, 1e6f, 0.0, log, exact) < 2.0);
  CHECK(worst_ulp(1e-40f, 1e-37f, 0.0, log, exact) < 2.0);
  CHECK(fast_log(1.0f) == 0.0f);
}

TEST_CASE("fast_log keeps the limits of the logarithm") {
  CHECK(fast_log(0.0f) == -infinity);
  CHECK(fast_log(-0.0f) == -infinity);
  CHECK(fast_log(infinity) == infinity);
  CHECK(std::isnan(fast_log(-1.0f)));
  CHECK(std::isnan(fast_log(not_a_number)));
}

TEST_CASE("softplus does not overflow") {
  CHECK(softplus_of(1000.0f) == 1000.0f);
  CHECK(softplus_of(-1000.0f) == 0.0f);
  CHECK(softplus_of(0.0) == doctest::Approx(std::log(2.0)));
}

TEST_CASE("fast_tanh and fast_erf stay close and keep NaN") {
  const auto tanh_of = [](double x) { return std::tanh(x); };
  const auto erf_of = [](double x) { return std::erf(x); };
  CHECK(worst_ulp(
          -12.0f, 12.0f, 0.0, [](float x) { return fast_tanh(x); }, tanh_of)
        < 4.0);
  CHECK(worst_ulp(
          -6.0f, 6.0f, 1.0, [](float x) { return fast_erf(x); }, erf_of)
        < 4.0);
  CHECK(std::isnan(fast_tanh(not_a_number)));
  CHECK(std::isnan(fast_erf(not_a_number)));
}

// The many partial sums that keep the digits are the lanes of vectors, which
// the sanitizers' build does without.
#ifdef __SANITIZE_ADDRESS__
constexpr bool has_lanes = false;
#else
constexpr bool has_lanes = true;
#endif

TEST_CASE("sums of many equal numbers keep their digits") {
  if (!has_lanes)
    return test::skip_case("needs sums in vectors, which sanitizers leave out");
  const std::vector<float> x(1 << 20, 0.1f);
  CHECK(sum(x.data(), 1 << 20) == doctest::Approx(104857.6).epsilon(1e-5));
  std::vector<float> columns(4);
  sum_rows(columns.data(), x.data(), 1 << 18, 4);
  for (const float c : columns)
    CHECK(c == doctest::Approx(26214.4).epsilon(1e-4));
}

TEST_CASE("a product over no elements is zero") {
  std::vector<float> c(6, 7.0f);
  gemm(2, 3, 0, {}, {}, 0.0f, c.data(), 3);
  CHECK(c == std::vector<float>(6, 0.0f));
}

TEST_CASE("masks draw the numbers of philox, wherever they begin") {
  const philox random(42, 7, 3);
  const std::uint64_t wrap = (std::uint64_t{1} << 34) - 130;
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{5}, wrap}) {
    std::vector<std::uint8_t> mask(1003);
    draw_mask({42, 7, 3}, first, 0.3f, mask.data(), 1003);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < mask.size(); ++i)
      wrong += mask[i] != (random.uniform(first + i) >= 0.3f ? 1 : 0);
    CHECK(wrong == 0);
  }
}
} // TEST_SUITE("kernels.cpu.vector_math")

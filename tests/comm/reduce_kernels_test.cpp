// SPDX-License-Identifier: Apache-2.0
#include "values.hpp"

#include <troupe/comm/local/reduce_kernels.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>

using namespace comm_test;
using namespace troupe::comm;

TEST_SUITE("comm.reduce_kernels") {

namespace {

tensor sum_of(const std::vector<tensor>& inputs) {
  auto out = poisoned_tensor(inputs[0].dims(), inputs[0].type());
  std::vector<const std::byte*> sources;
  for (auto& input : inputs)
    sources.push_back(input.raw());
  local::add(out.type(), sources, {out.raw()}, 0, std::size_t(out.numel()));
  return out;
}

// All 2^16 patterns.
template <class Half>
tensor all_halves() {
  tensor t = tensor::make(host(), {65536}, dtype_of<Half>);
  for (unsigned i = 0; i < 65536; ++i)
    t.values<Half>()[i].bits = static_cast<std::uint16_t>(i);
  return t;
}

// Adding +0 to each value keeps it, so that every conversion is seen.
template <class Half>
std::size_t changed_by_adding_zero() {
  auto values = all_halves<Half>();
  auto zeros = tensor::make(host(), {65536}, dtype_of<Half>);
  std::memset(zeros.raw(), 0, zeros.bytes());
  auto sum = sum_of({values, zeros});
  std::size_t changed = 0;
  for (std::size_t i = 0; i < 65536; ++i) {
    auto before = get(values, i), after = get(sum, i);
    changed += std::isnan(before) ? !std::isnan(after) : before != after;
  }
  return changed;
}

// Differences to the conversions of the half types, over sums of two halves
// that lie anywhere between them.
template <class Half>
std::size_t differently_rounded() {
  auto a = all_halves<Half>(), b = clone(a, host());
  std::minstd_rand random;
  for (auto& value : b.template values<Half>())
    value.bits = static_cast<std::uint16_t>(random() >> 8);
  auto sum = sum_of({a, b});
  std::size_t different = 0;
  for (std::size_t i = 0; i < 65536; ++i) {
    Half want{float(get(a, i)) + float(get(b, i))};
    auto got = sum.template values<Half>()[i];
    different +=
      std::isnan(float(want)) ? !std::isnan(float(got)) : want.bits != got.bits;
  }
  return different;
}

} // namespace

TEST_CASE("every half survives conversion to float and back") {
  CHECK(changed_by_adding_zero<float16>() == 0);
  CHECK(changed_by_adding_zero<bfloat16>() == 0);
}

TEST_CASE("halves are rounded as the half types round") {
  CHECK(differently_rounded<float16>() == 0);
  CHECK(differently_rounded<bfloat16>() == 0);
}

TEST_CASE("an int32 sum wraps") {
  std::vector<tensor> inputs{poisoned_tensor({3}, dtype::int32),
                             poisoned_tensor({3}, dtype::int32)};
  auto sum = sum_of(inputs);
  CHECK(sum.values<std::int32_t>()[2]
        == std::bit_cast<std::int32_t>(0xAAAAAAAAu * 2u));
}

TEST_CASE("ranges at any offset write their own elements only") {
  auto a = random_tensor({300}, dtype::float32, 1);
  auto b = random_tensor({300}, dtype::float32, 2);
  const std::byte* sources[] = {a.raw(), b.raw()};
  for (bool stream : {false, true})
    for (std::size_t first : {0, 1, 4, 17, 64})
      for (std::size_t count : {0, 1, 31, 32, 33, 200}) {
        auto out = poisoned_tensor({300}, dtype::float32);
        auto poison = get(out, 299);
        local::add(dtype::float32, sources, {out.raw(), stream}, first, count);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < 300; ++i) {
          auto inside = i >= first && i < first + count;
          wrong += get(out, i)
                   != (inside ? float(get(a, i)) + float(get(b, i)) : poison);
        }
        CHECK(wrong == 0);
      }
}

TEST_CASE("copies at any offset write their own bytes only") {
  auto a = random_tensor({3000}, dtype::float32, 1);
  for (bool stream : {false, true})
    for (std::size_t first : {0, 1, 16, 100})
      for (std::size_t count : {0, 1, 16, 4096, 4099, 10000}) {
        auto out = poisoned_tensor({3000}, dtype::float32);
        auto want = clone(out, host());
        std::memcpy(want.raw() + first, a.raw() + first, count);
        local::copy(a.raw(), {out.raw(), stream}, first, count);
        CHECK(same_bits(out, want));
      }
}

TEST_CASE("the last-level cache has a plausible size") {
  CHECK(local::last_level_cache_bytes() >= std::size_t{64} << 10);
  CHECK(local::last_level_cache_bytes() <= std::size_t{8} << 30);
}
} // TEST_SUITE("comm.reduce_kernels")

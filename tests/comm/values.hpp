// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/tensor.hpp>

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

/// Tensors with known values for the tests of comm.
namespace comm_test {

using namespace troupe;

inline arena& host() {
  static arena memory{make_host_memory_source()};
  return memory;
}

inline double get(const tensor& t, std::size_t i) {
  switch (t.type()) {
  case dtype::float16: return float(t.values<float16>()[i]);
  case dtype::bfloat16: return float(t.values<bfloat16>()[i]);
  case dtype::int32: return t.values<std::int32_t>()[i];
  default: return t.values<float>()[i];
  }
}

inline void set(tensor& t, std::size_t i, double value) {
  switch (t.type()) {
  case dtype::float16: t.values<float16>()[i] = float16(float(value)); break;
  case dtype::bfloat16: t.values<bfloat16>()[i] = bfloat16(float(value)); break;
  case dtype::int32:
    t.values<std::int32_t>()[i] = static_cast<std::int32_t>(value);
    break;
  default: t.values<float>()[i] = float(value);
  }
}

/// Values in [-4, 4) (int32: in [-40000, 40000)) that depend on `seed` alone.
inline tensor random_tensor(const shape& dims, dtype type, unsigned seed) {
  std::minstd_rand random{seed + 1};
  auto t = tensor::make(host(), dims, type);
  auto scale = type == dtype::int32 ? 10000.0 : 1.0;
  for (std::size_t i = 0; i < std::size_t(t.numel()); ++i)
    set(t, i, (double(random() % 65536) / 8192.0 - 4.0) * scale);
  return t;
}

/// Rounds all elements to whole numbers. Sums of a few of them are the same in
/// any order.
inline void make_whole(tensor& t) {
  for (std::size_t i = 0; i < std::size_t(t.numel()); ++i)
    set(t, i, std::trunc(get(t, i)));
}

/// A tensor whose bytes are all 0xAA, so that elements never written show.
inline tensor poisoned_tensor(const shape& dims, dtype type) {
  auto t = tensor::make(host(), dims, type);
  std::memset(t.raw(), 0xAA, t.bytes());
  return t;
}

inline bool same_bits(const tensor& a, const tensor& b) {
  return a.type() == b.type() && a.dims() == b.dims()
         && (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

inline std::vector<tensor> clones(const std::vector<tensor>& values) {
  std::vector<tensor> copies;
  for (auto& value : values)
    copies.push_back(value ? clone(value, host()) : tensor{});
  return copies;
}

/// Where the processes of a group meet: a path that nobody else uses.
inline std::string socket_path() {
  static std::atomic<int> count{0};
  return std::filesystem::temp_directory_path()
         / ("troupe-comm-" + std::to_string(::getpid()) + "-"
            + std::to_string(count++));
}

} // namespace comm_test

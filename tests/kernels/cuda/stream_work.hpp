// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/cuda_stream.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <utility>

namespace troupe::test {

/// Work that a test launches; its end can be awaited once.
class test_work final : public work {
public:
  explicit test_work(std::function<void(cuda::cuda_stream&)> what)
    : what_(std::move(what)) {}
  void execute(stream& on) override { what_(cuda::stream_of(&on)); }
  void completed(std::exception_ptr failure) noexcept override {
    failure ? ended_.set_exception(std::move(failure)) : ended_.set_value();
  }
  void wait() { ended_.get_future().get(); }

private:
  std::function<void(cuda::cuda_stream&)> what_;
  std::promise<void> ended_;
};

/// A vector in host memory.
inline tensor vector_of(std::size_t count, float value) {
  static arena host{make_host_memory_source()};
  auto made =
    tensor::make(host, {static_cast<std::int64_t>(count)}, dtype::float32);
  std::ranges::fill(made.values<float>(), value);
  return made;
}

inline void fill_with(cuda::cuda_stream& on, tensor& t, float value) {
  on.run_for_each<cuda::fill<float>>(t.numel(),
                                     {t.data<float>(), t.numel(), value});
}

/// Queues to = factor * from.
inline void scale_to(cuda::cuda_stream& on, const tensor& from, tensor& to,
                     float factor) {
  on.run_for_each<cuda::scale>(
    to.numel(), {from.data<float>(), to.data<float>(), to.numel(), factor, 0});
}

inline float first_of(device& on, const tensor& t) {
  static arena host{make_host_memory_source()};
  return on.to_host(t, host).values<float>().front();
}

} // namespace troupe::test

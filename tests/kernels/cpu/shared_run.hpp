// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/cpu/blocked_images.hpp>
#include <kernels/cpu/scrambled_parts.hpp>
#include <support/op_compare.hpp>
#include <support/op_runner.hpp>

#include <troupe/kernels/kernel_options.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::test {

constexpr std::size_t sharing_workers = 3;
constexpr double same_bits = 0;
constexpr double near = 1e-5; // libraries may sum up in other orders

inline stream_options shared_by(part_runner& helpers) {
  return {.name = {},
          .width = static_cast<int>(sharing_workers),
          .helpers = &helpers};
}

/// A kernel on a stream with helpers.
class shared_run {
public:
  shared_run(const kernel_table& table, const op_case& c)
    : runner_(table, c, shared_by(helpers_)) {}

  op_values run(const op_case& c) { return runner_.run(c); }
  std::size_t most_parts() const { return helpers_.most_parts(); }

private:
  scrambled_parts helpers_{sharing_workers, 1};
  op_runner runner_;
};

/// Runs whole, in parts, and in parts that are taken in other orders. Returns
/// the results of the whole.
inline op_values check_op(const kernel_table& table, const op_case& c,
                          double tolerance) {
  CAPTURE(describe(c));
  const auto whole = run_op(table, c);
  shared_run shared(table, c);
  const auto parts = shared.run(c);
  CHECK(shared.most_parts() > 1);
  CHECK(difference(parts, whole, tolerance) == "");
  for (int again = 0; again < 2; ++again)
    CHECK(difference(shared.run(c), parts, same_bits) == "");
  return whole;
}

/// The op is too little work to be cut.
inline void check_whole(const kernel_table& table, const op_case& c) {
  CAPTURE(describe(c));
  shared_run shared(table, c);
  CHECK(difference(shared.run(c), run_op(table, c), same_bits) == "");
  CHECK(shared.most_parts() == 0);
}

/// The op and its gradient.
inline void check_both(const kernel_table& table, const op_case& c,
                       double tolerance) {
  const auto back = backward_of(c, check_op(table, c, tolerance));
  check_op(table, back, tolerance);
}

/// The op and each part of its gradient, which must all be cut.
inline void check_each(const kernel_table& table, const op_case& c,
                       double tolerance) {
  const auto back = backward_of(c, check_op(table, c, tolerance));
  for (const auto& [slot, count] : back.outputs)
    check_op(table, only_output(back, slot), tolerance);
}

inline const kernel_table& plain() {
  static const auto table = cpu_kernels();
  return table;
}

/// The same with images in blocks of 16 channels.
inline const kernel_table& blocked() {
  static const auto table = with_blocked_inputs(cpu_kernels(), {16});
  return table;
}

using sizes = std::vector<std::int64_t>;

/// The op and its gradient on batches of such sizes, one kernel each: near what
/// the whole gives, and the bits of a kernel that saw no other batch.
template <class Make>
void check_batches(const kernel_table& table, Make make, const sizes& samples) {
  const auto first = make(samples[0]);
  shared_run shared(table, first);
  shared_run back(table, backward_of(first, run_op(table, first)));
  const auto check = [&](shared_run& used, const op_case& c) {
    CAPTURE(describe(c));
    auto whole = run_op(table, c);
    const auto parts = used.run(c);
    CHECK(difference(parts, whole, near) == "");
    CHECK(difference(parts, shared_run(table, c).run(c), same_bits) == "");
    return whole;
  };
  for (const auto n : samples) {
    const auto c = make(n);
    check(back, backward_of(c, check(shared, c)));
  }
  CHECK(shared.most_parts() > 1);
  CHECK(back.most_parts() > 1);
}

} // namespace troupe::test

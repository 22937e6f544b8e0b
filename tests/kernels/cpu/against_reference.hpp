// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <support/op_case.hpp>
#include <support/op_runner.hpp>

#include <troupe/kernels/kernel.hpp>

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

/// How far a float32 kernel may be from the reference, relative to the largest
/// magnitude of the tensor: some hundred roundings of 6e-8.
inline constexpr double reference_tolerance = 2e-5;

/// Compares a table of float32 kernels with reference_kernels(). Each op runs
/// with a new kernel instance and with one that has run the other cases of the
/// same type and attributes; the two must agree bit by bit.
class reference_check {
public:
  explicit reference_check(kernel_table fast) : fast_(std::move(fast)) {}

  /// Runs the case and its gradient, all output slots together and each one
  /// alone; returns a line for each op that differs or throws.
  std::vector<std::string> failures(const op_case& c);

private:
  void run(const op_case& c, std::vector<std::string>& failures);
  std::string failure(const op_case& c);
  op_runner& used_runner(const op_case& c);

  kernel_table fast_, reference_ = reference_kernels();
  std::deque<std::pair<op_case, op_runner>> runners_;
};

} // namespace troupe::test

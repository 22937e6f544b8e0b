// SPDX-License-Identifier: Apache-2.0
#include "against_reference.hpp"

#include <support/op_compare.hpp>
#include <support/op_runner.hpp>

#include <troupe/kernels/kernel.hpp>

#include <doctest/doctest.h>

#include <deque>
#include <exception>
#include <utility>

namespace troupe::test {

namespace {

class reference_check {
public:
  void forward_and_backward(const op_case& c) {
    if (!fast_.has(c.type, device_kind::cpu))
      return;
    both(c);
    if (!c.gradient || !fast_.has(c.type + "_grad", device_kind::cpu))
      return;
    const auto backward = backward_of(c, run_op(reference_, c));
    both(backward);
    if (backward.outputs.size() > 1)
      for (const auto& [slot, count] : backward.outputs)
        both(only_output(backward, slot));
  }

private:
  void both(const op_case& c) {
    const auto text = failure(c);
    CHECK_MESSAGE(text.empty(), describe(c), "\n  ", text);
  }

  /// Why the fast kernel is wrong, or nothing.
  std::string failure(const op_case& c) {
    try {
      const auto result = run_op(fast_, c);
      const auto text =
        difference(result, run_op(reference_, c), reference_tolerance);
      if (!text.empty())
        return text;
      const auto again = difference(used_runner(c).run(c), result, 0);
      return again.empty() ? again : "after other cases: " + again;
    } catch (const std::exception& e) {
      return e.what();
    }
  }

  /// A runner that has run the earlier cases of the same type and attributes.
  op_runner& used_runner(const op_case& c) {
    for (auto& [known, runner] : runners_)
      if (known.type == c.type && known.attributes == c.attributes)
        return runner;
    return runners_.emplace_back(c, op_runner(fast_, c)).second;
  }

  kernel_table fast_ = cpu_kernels(), reference_ = reference_kernels();
  std::deque<std::pair<op_case, op_runner>> runners_;
};

} // namespace

void check_against_reference(const std::vector<op_case>& cases) {
  reference_check check;
  for (const auto& c : cases)
    check.forward_and_backward(c);
}

} // namespace troupe::test

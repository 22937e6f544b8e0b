// SPDX-License-Identifier: Apache-2.0
#include <kernels/cpu/against_reference.hpp>

#include <support/op_compare.hpp>

#include <exception>

namespace troupe::test {

std::vector<std::string> reference_check::failures(const op_case& c) {
  std::vector<std::string> all;
  run(c, all);
  if (!c.gradient)
    return all;
  const auto backward = backward_of(c, run_op(reference_, c));
  run(backward, all);
  if (backward.outputs.size() > 1)
    for (const auto& [slot, count] : backward.outputs)
      run(only_output(backward, slot), all);
  return all;
}

void reference_check::run(const op_case& c, std::vector<std::string>& all) {
  const auto text = failure(c);
  if (!text.empty())
    all.push_back(describe(c) + "\n  " + text);
}

std::string reference_check::failure(const op_case& c) {
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

op_runner& reference_check::used_runner(const op_case& c) {
  for (auto& [known, runner] : runners_)
    if (known.type == c.type && known.attributes == c.attributes)
      return runner;
  return runners_.emplace_back(c, op_runner(fast_, c)).second;
}

} // namespace troupe::test

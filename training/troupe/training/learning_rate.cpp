// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/learning_rate.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>

namespace troupe {

namespace {

void require_not_computed(const graph::block& b, const std::string& rate) {
  const auto* var = b.find_var(rate);
  const auto writes_it = [&](const graph::op_desc& op) {
    const auto outputs = op.output_names();
    return std::ranges::find(outputs, rate) != outputs.end();
  };
  if (!var || !var->persistable || var->type != dtype::float32
      || std::ranges::any_of(b.ops, writes_it))
    throw error(errc::invalid_argument,
                "the program computes its learning rate itself",
                {.variable = rate});
}

} // namespace

const std::string& learning_rate_variable(const graph::program& main) {
  const std::string* rate = nullptr;
  for (const graph::op_desc& op : main.main().ops)
    for (const std::string& name : op.input("LearningRate")) {
      if (rate && *rate != name)
        throw error(errc::invalid_argument,
                    "updates take several learning rates, such as " + *rate
                      + " and " + name);
      rate = &name;
    }
  if (!rate)
    throw error(errc::not_found, "the program has no learning rate");
  require_not_computed(main.main(), *rate);
  return *rate;
}

} // namespace troupe

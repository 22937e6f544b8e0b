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

std::vector<std::string> learning_rates_of(const graph::program& main) {
  std::vector<std::string> found;
  for (const graph::op_desc& op : main.main().ops)
    for (const std::string& name : op.input("LearningRate"))
      if (std::ranges::find(found, name) == found.end())
        found.push_back(name);
  return found;
}

std::string learning_rate_variable(const graph::program& main) {
  const auto rates = learning_rates_of(main);
  if (rates.empty())
    throw error(errc::not_found, "the program has no learning rate");
  if (rates.size() > 1)
    throw error(errc::invalid_argument,
                "updates take several learning rates, such as " + rates[0]
                  + " and " + rates[1]);
  require_not_computed(main.main(), rates.front());
  return rates.front();
}

} // namespace troupe

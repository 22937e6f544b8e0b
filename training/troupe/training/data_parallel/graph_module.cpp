// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data_parallel/graph_module.hpp>

#include <troupe/actors/executor.hpp>
#include <troupe/base/error.hpp>
#include <troupe/training/data_parallel/module_programs.hpp>

#include <algorithm>
#include <utility>

namespace troupe {

module_description
describe_module(const graph::network& net,
                const std::vector<graph::variable_ref>& inputs,
                const std::vector<graph::variable_ref>& outputs) {
  module_description made{.startup = net.startup, .main = net.main};
  for (auto& x : inputs)
    made.inputs.push_back(x.name());
  for (auto& y : outputs)
    made.outputs.push_back(y.name());
  made.schemas = net.schemas();
  return made;
}

graph_module::graph_module(module_description description,
                           std::shared_ptr<scope> parameters,
                           std::uint64_t seed)
  : programs_(
    std::make_shared<const module_programs>(make_module_programs(description))),
    values_(std::move(parameters)) {
  if (values_)
    return;
  values_ = std::make_shared<scope>();
  run_startup(description.startup, *values_, seed);
}

graph_module::~graph_module() = default;

const std::vector<std::string>& graph_module::parameters() const noexcept {
  return programs_->parameters;
}

const std::vector<std::string>& graph_module::buffers() const noexcept {
  return programs_->buffers;
}

variable* graph_module::gradient(std::string_view parameter) {
  const auto& all = programs_->gradients;
  const auto found =
    std::ranges::find(all, parameter, &graph::parameter_gradient::parameter);
  if (found == all.end())
    throw error(errc::not_found,
                "the module has no such trained parameter, and no such "
                "buffer with a gradient",
                {.variable = std::string{parameter}});
  auto* held = values_->find(found->gradient);
  return held && held->has_value() ? held : nullptr;
}

void graph_module::zero_gradients() {
  for (auto& g : programs_->gradients)
    if (auto* held = values_->find(g.gradient))
      held->clear();
}

} // namespace troupe

// SPDX-License-Identifier: Apache-2.0
#include "program_runner.hpp"

#include <troupe/graph/dtype_number.hpp>
#include <troupe/kernels/lod_sharing.hpp>

#include <algorithm>
#include <cmath>

namespace troupe::graph::testing {

namespace {

bool is_update(const op_desc& op) {
  return op.role() & role_optimize;
}

/// `p` up to the gradients.
program without_updates(program p) {
  std::erase_if(p.main().ops, is_update);
  return p;
}

program forward_only(program p) {
  std::erase_if(p.main().ops, [](const op_desc& op) {
    return op.role() & (role_optimize | role_backward);
  });
  return p;
}

/// Dense values of a gradient, whichever form it has.
std::vector<double> dense(const variable& gradient, std::size_t size) {
  std::vector<double> result(size);
  if (gradient.is_tensor()) {
    auto values = gradient.as_tensor().values<double>();
    return {values.begin(), values.end()};
  }
  const auto& rows = gradient.as_rows();
  auto values = rows.values.values<double>();
  const auto width = size / static_cast<std::size_t>(rows.height);
  for (std::size_t i = 0; i < rows.rows.size(); ++i)
    for (std::size_t j = 0; j < width; ++j)
      result[static_cast<std::size_t>(rows.rows[i]) * width + j] +=
        values[i * width + j];
  return result;
}

} // namespace

program_runner::program_runner()
  : device_(make_cpu_device(0)), kernels_(reference_kernels()) {}

void program_runner::run(const program& p) {
  for (const auto& op : p.main().ops)
    run_op(op);
}

void program_runner::run_op(op_desc op) {
  if (op.attributes.get_int("dtype", 0) == dtype_number(dtype::float32))
    op.attributes.set("dtype", dtype_number(dtype::float64));
  argument_list inputs, outputs;
  for (const auto& slot : op.inputs)
    for (const auto& name : slot.arguments)
      inputs.add({slot.name, name, &vars_[name]});
  for (const auto& slot : op.outputs)
    for (const auto& name : slot.arguments)
      outputs.add({slot.name, name, &vars_[name]});
  step_info step;
  step.seed = 7;
  kernel_context context{*device_, nullptr, op.attributes,
                         inputs,   outputs, step};
  run_kernel(*kernels_.make(op.type, device_kind::cpu, op.attributes),
             lod_rule_of(op.type), context);
}

void program_runner::set(const std::string& name, const shape& dims,
                         const std::vector<double>& values) {
  auto value = tensor::make(device_->memory(), dims, dtype::float64);
  std::ranges::copy(values, value.values<double>().begin());
  vars_[name].set(std::move(value));
}

void program_runner::set_ids(const std::string& name, const shape& dims,
                             const std::vector<std::int64_t>& values) {
  auto value = tensor::make(device_->memory(), dims, dtype::int64);
  std::ranges::copy(values, value.values<std::int64_t>().begin());
  vars_[name].set(std::move(value));
}

std::vector<double> program_runner::values(const std::string& name) {
  auto values = vars_[name].as_tensor().values<double>();
  return {values.begin(), values.end()};
}

double gradient_error(program_runner& runner, const network& net,
                      const std::string& loss) {
  constexpr double step = 1e-5;
  runner.run(net.startup);
  const auto forward = forward_only(net.main);
  runner.run(without_updates(net.main));
  double worst = 0;
  for (const auto& [name, var] : net.main.main().vars) {
    if (!var.is_parameter || var.stop_gradient)
      continue;
    const auto start = runner.values(name);
    const auto computed = dense(runner.var(gradient_name(name)), start.size());
    // Every parameter, but not every element of the large ones.
    for (std::size_t i = 0; i < start.size(); i += 1 + start.size() / 7) {
      auto loss_at = [&](double delta) {
        auto moved = start;
        moved[i] += delta;
        runner.set(name, var.dims, moved);
        runner.run(forward);
        return runner.scalar(loss);
      };
      const auto slope = (loss_at(step) - loss_at(-step)) / (2 * step);
      worst = std::max(worst, std::abs(slope - computed[i]));
    }
    runner.set(name, var.dims, start);
  }
  return worst;
}

} // namespace troupe::graph::testing

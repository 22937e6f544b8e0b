// SPDX-License-Identifier: Apache-2.0
#include <support/op_runner.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <deque>
#include <utility>

namespace troupe::test {

namespace {

tensor to_tensor(const op_value& value, arena& memory) {
  auto exact = tensor::make(memory, value.dims, dtype::float64);
  std::copy(value.elements.begin(), value.elements.end(),
            exact.values<double>().begin());
  return value.type == dtype::float64 ? exact : cast(exact, value.type, memory);
}

std::vector<double> to_elements(const tensor& value, arena& memory) {
  const auto exact = cast(value, dtype::float64, memory);
  auto from = exact.values<double>();
  return {from.begin(), from.end()};
}

variable to_variable(const op_value& value, arena& memory) {
  variable result;
  auto values = to_tensor(value, memory);
  if (value.is_rows())
    result.set(selected_rows{value.rows, value.height, std::move(values)});
  else
    result.set(std::move(values));
  return result;
}

op_value to_value(const variable& var, device& on) {
  const bool is_rows = var.is_rows();
  const auto& found = is_rows ? var.as_rows().values : var.as_tensor();
  const auto plain = on.to_host(found, on.memory());
  op_value value{.dims = plain.dims(),
                 .type = plain.type(),
                 .elements = to_elements(plain, on.memory())};
  if (is_rows) {
    value.rows = var.as_rows().rows;
    value.height = var.as_rows().height;
  }
  return value;
}

/// The variables of a case and the arguments that refer to them.
struct bound_arguments {
  std::deque<variable> variables;
  std::deque<std::string> names;
  argument_list inputs, outputs;

  bound_arguments(const op_case& c, arena& memory) {
    for (const auto& [slot, values] : c.inputs)
      for (std::size_t i = 0; i < values.size(); ++i)
        inputs.add(make(slot, i, to_variable(values[i], memory)));
    for (const auto& [slot, count] : c.outputs)
      for (std::size_t i = 0; i < count; ++i)
        outputs.add(output(c, slot, i));
  }

private:
  op_argument make(const std::string& slot, std::size_t index, variable value) {
    names.push_back(slot + "_" + std::to_string(index));
    variables.push_back(std::move(value));
    return {slot, names.back(), &variables.back()};
  }

  op_argument output(const op_case& c, const std::string& slot,
                     std::size_t index) {
    auto same = c.in_place.find(slot);
    if (same == c.in_place.end())
      return make(slot, index, {});
    const auto read = inputs.view();
    const auto found = read.in(same->second);
    if (index >= found.size())
      throw error(errc::invalid_argument, "no input " + same->second);
    return {slot, read.name(same->second, index), found[index]};
  }
};

} // namespace

op_runner::op_runner(const kernel_table& table, const op_case& c,
                     const stream_options& queue)
  : attributes_(c.attributes), device_(make_cpu_device(0)),
    queue_(queue.helpers ? device_->make_stream(queue) : nullptr),
    kernel_(table.make(c.type, device_kind::cpu, attributes_)),
    rule_(lod_rule_of(c.type)) {}

op_values op_runner::run(const op_case& c) {
  bound_arguments arguments(c, device_->memory());
  kernel_context ctx(*device_, queue_.get(), attributes_, arguments.inputs,
                     arguments.outputs, c.step);
  run_kernel(*kernel_, rule_, ctx);
  op_values results;
  ctx.outputs().for_each([&](const op_argument& output) {
    results[std::string(output.slot)].push_back(
      output.var->has_value() ? to_value(*output.var, *device_) : op_value{});
  });
  return results;
}

op_values run_op(const kernel_table& table, const op_case& c) {
  return op_runner(table, c).run(c);
}

} // namespace troupe::test

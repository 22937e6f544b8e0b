// SPDX-License-Identifier: Apache-2.0
#include <support/op_runner.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <deque>
#include <future>
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

tensor numbers_of(const std::vector<std::int64_t>& rows, arena& memory) {
  auto made = tensor::make(memory, {static_cast<std::int64_t>(rows.size())},
                           dtype::int64);
  std::ranges::copy(rows, made.data<std::int64_t>());
  return made;
}

variable to_variable(const op_value& value, device& on) {
  variable result;
  arena host{make_host_memory_source()}; // its blocks outlive it
  const auto is_host = on.memory().is_host();
  auto values = to_tensor(value, is_host ? on.memory() : host);
  if (!is_host)
    values = on.to_device(values);
  if (!value.is_rows())
    result.set(std::move(values));
  else if (is_host)
    result.set(selected_rows{value.rows, value.height, std::move(values)});
  else
    result.set(selected_rows{{},
                             value.height,
                             std::move(values),
                             on.to_device(numbers_of(value.rows, host))});
  return result;
}

/// Without the entries of a device that are no rows.
op_value to_rows(op_value all, const tensor& numbers) {
  auto found = all;
  found.elements.clear();
  const auto width =
    numbers.numel() == 0
      ? std::size_t{0}
      : all.elements.size() / static_cast<std::size_t>(numbers.numel());
  auto values = all.elements.cbegin();
  for (auto row : numbers.values<std::int64_t>()) {
    const auto next = values + static_cast<std::ptrdiff_t>(width);
    if (row >= 0) {
      found.rows.push_back(row);
      found.elements.insert(found.elements.end(), values, next);
    }
    values = next;
  }
  found.dims[0] = static_cast<std::int64_t>(found.rows.size());
  return found;
}

op_value to_value(const variable& var, device& on) {
  const bool is_rows = var.is_rows();
  const auto& found = is_rows ? var.as_rows().values : var.as_tensor();
  arena host{make_host_memory_source()}; // its blocks outlive it
  const auto plain = on.to_host(found, host);
  op_value value{.dims = plain.dims(),
                 .type = plain.type(),
                 .elements = to_elements(plain, host)};
  if (!is_rows)
    return value;
  const auto& rows = var.as_rows();
  value.height = rows.height;
  if (rows.numbers)
    return to_rows(std::move(value), on.to_host(rows.numbers, host));
  value.rows = rows.rows;
  return value;
}

/// The variables of a case and the arguments that refer to them.
struct bound_arguments {
  std::deque<variable> variables;
  std::deque<std::string> names;
  argument_list inputs, outputs;

  bound_arguments(const op_case& c, device& on) {
    for (const auto& [slot, values] : c.inputs)
      for (std::size_t i = 0; i < values.size(); ++i)
        inputs.add(make(slot, i, to_variable(values[i], on)));
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

/// A call on a stream, whose end the thread waits for.
template <class Call>
class awaited_call final : public work {
public:
  explicit awaited_call(Call call) : call_(call) {}

  void execute(stream&) override { call_(); }
  void completed(std::exception_ptr failure) noexcept override {
    failure ? ended_.set_exception(std::move(failure)) : ended_.set_value();
  }
  void run(stream& on) {
    on.launch(*this, {});
    ended_.get_future().get();
  }

private:
  Call call_;
  std::promise<void> ended_;
};

} // namespace

op_runner::op_runner(const kernel_table& table, const op_case& c,
                     const stream_options& queue)
  : attributes_(c.attributes), device_(make_cpu_device(0)),
    queue_(queue.helpers ? device_->make_stream(queue) : nullptr),
    kernel_(table.make(c.type, device_kind::cpu, attributes_)),
    rule_(lod_rule_of(c.type)) {}

op_runner::op_runner(const kernel_table& table, const op_case& c,
                     std::shared_ptr<device> on)
  : attributes_(c.attributes), device_(std::move(on)),
    queue_(device_->make_stream({.name = "test"})),
    kernel_(table.make(c.type, device_->id().kind, attributes_)),
    rule_(lod_rule_of(c.type)) {}

op_values op_runner::run(const op_case& c) {
  bound_arguments arguments(c, *device_);
  kernel_context ctx(*device_, queue_.get(), attributes_, arguments.inputs,
                     arguments.outputs, c.step);
  const auto call = [&] { run_kernel(*kernel_, rule_, ctx); };
  if (!queue_ || queue_->completes_at_launch())
    call();
  else
    awaited_call(call).run(*queue_);
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

op_values run_op(const kernel_table& table, const op_case& c,
                 std::shared_ptr<device> on) {
  return op_runner(table, c, std::move(on)).run(c);
}

} // namespace troupe::test

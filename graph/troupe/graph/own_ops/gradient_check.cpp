// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/own_ops/gradient_check.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/argument.hpp>
#include <troupe/graph/program.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/lod_sharing.hpp>
#include <troupe/kernels/variable.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <span>
#include <utility>

namespace troupe::graph {

namespace {

/// How differences are taken, and how far a gradient may be off, relative to
/// the largest one.
struct difference_rule {
  double step;
  double tolerance;
  double smallest_magnitude;
};

difference_rule rule_of(dtype precision) {
  if (precision == dtype::float64)
    return {1e-5, 1e-6, 1e-2};
  if (precision == dtype::float32)
    return {1e-2, 5e-3, 1e-2};
  throw error(errc::invalid_argument,
              "gradients are checked in float64 or float32, not in "
                + std::string{to_string(precision)});
}

std::string variable_name(const std::string& slot, std::size_t index) {
  return slot + "_" + std::to_string(index);
}

std::size_t output_count(const gradient_case& what, const slot_schema& slot) {
  const auto given = what.outputs.find(std::string{slot.name});
  return given == what.outputs.end() ? 1 : given->second;
}

op_desc forward_op(const op_schema& schema, const gradient_case& what) {
  op_desc op;
  op.type = what.type;
  op.attributes = what.attributes;
  const auto names = [](const std::string& slot, std::size_t count) {
    std::vector<std::string> result;
    for (std::size_t i = 0; i < count; ++i)
      result.push_back(variable_name(slot, i));
    return result;
  };
  for (auto& [slot, values] : what.inputs)
    op.set_input(slot, names(slot, values.size()));
  for (auto& slot : schema.outputs)
    if (const auto count = output_count(what, slot))
      op.set_output(std::string{slot.name},
                    names(std::string{slot.name}, count));
  return op;
}

double number_at(const tensor& value, std::int64_t i) {
  return value.type() == dtype::float64
           ? value.data<double>()[i]
           : static_cast<double>(value.data<float>()[i]);
}

void set_number(tensor& value, std::int64_t i, double number) {
  if (value.type() == dtype::float64)
    value.data<double>()[i] = number;
  else
    value.data<float>()[i] = static_cast<float>(number);
}

/// Values of variables, and ops that run on them one after the other.
class op_bench {
public:
  op_bench(const kernel_table& kernels, const step_info& step)
    : kernels_(kernels), step_(step), device_(make_cpu_device(0)) {}

  arena& memory() { return device_->memory(); }
  variable& operator[](const std::string& name) { return values_[name]; }

  void run(const op_desc& op) {
    const auto inputs = pointers(op.inputs), outputs = pointers(op.outputs);
    kernel_context ctx(*device_, nullptr, op.attributes,
                       {op.inputs, inputs.data()}, {op.outputs, outputs.data()},
                       step_);
    auto& code = codes_[&op];
    if (!code)
      code = kernels_.make(op.type, device_kind::cpu, op.attributes);
    run_kernel(*code, lod_rule_of(op.type), ctx);
  }

private:
  std::vector<variable*> pointers(const std::vector<op_slot>& slots) {
    std::vector<variable*> result;
    for (auto& slot : slots)
      for (auto& name : slot.arguments)
        result.push_back(name == empty_argument ? nullptr : &values_[name]);
    return result;
  }

  const kernel_table& kernels_;
  const step_info& step_;
  std::unique_ptr<device> device_;
  std::map<std::string, variable> values_;
  std::map<const op_desc*, std::unique_ptr<kernel>> codes_;
};

/// The whole tensor, also if only some of its rows were computed.
tensor dense(const variable& value, arena& memory) {
  if (!value.is_rows())
    return value.as_tensor();
  const auto& some = value.as_rows();
  auto dims = some.values.dims();
  dims[0] = some.height;
  auto whole = tensor::make(memory, dims, some.values.type());
  for (std::int64_t i = 0; i < whole.numel(); ++i)
    set_number(whole, i, 0);
  const auto width = dims.numel(1, dims.rank());
  for (std::size_t r = 0; r < some.rows.size(); ++r)
    for (std::int64_t i = 0; i < width; ++i) {
      const auto to = some.rows[r] * width + i;
      const auto from = static_cast<std::int64_t>(r) * width + i;
      set_number(whole, to,
                 number_at(whole, to) + number_at(some.values, from));
    }
  return whole;
}

/// The position of an element in a row-major tensor.
shape position(const shape& dims, std::int64_t i) {
  shape at = dims;
  for (auto axis = dims.rank(); axis-- > 0; i /= dims[axis])
    at[axis] = i % dims[axis];
  return at;
}

/// One op, and its gradients at one place.
class checked_op {
public:
  checked_op(const op_schema_table& schemas, const kernel_table& kernels,
             const gradient_case& what)
    : what_(what), rule_(rule_of(what.precision)), bench_(kernels, what.step) {
    op_desc named;
    named.type = what.type;
    const auto& schema = find_schema(schemas, named);
    forward_ = forward_op(schema, what);
    for (auto& [slot, values] : what.inputs)
      for (std::size_t i = 0; i < values.size(); ++i)
        set_input(slot, i, values[i]);
    make_gradients(schema);
  }

  std::optional<wrong_gradient> find() {
    bench_.run(forward_);
    draw_weights();
    for (auto& op : backward_)
      bench_.run(op);
    for (auto& op : backward_)
      for (auto& slot : op.outputs)
        for (std::size_t i = 0; i < slot.arguments.size(); ++i)
          if (auto wrong = compare(op, slot, i))
            return wrong;
    return std::nullopt;
  }

private:
  void set_input(const std::string& slot, std::size_t i, const tensor& value) {
    const auto name = variable_name(slot, i);
    auto own = is_floating(value.type())
                 ? cast(value, what_.precision, bench_.memory())
                 : clone(value, bench_.memory());
    if (is_floating(own.type()))
      inputs_.emplace(gradient_name(name), own);
    bench_[name].set(std::move(own));
  }

  void make_gradients(const op_schema& schema) {
    backward_ =
      make_gradient(schema, {forward_, [&](const std::string& name) {
                               return inputs_.contains(gradient_name(name));
                             }});
    if (backward_.empty())
      throw error(errc::unsupported_op,
                  "the op '" + what_.type + "' has no gradient",
                  {.op_type = what_.type});
  }

  /// The gradients of the results that a gradient op reads. They are the
  /// weights of the sum.
  void draw_weights() {
    std::mt19937_64 random{1000};
    std::uniform_real_distribution<double> number{-1, 1};
    for (auto& result : forward_.output_names())
      if (is_read(gradient_name(result))) {
        const auto& value = bench_[result].as_tensor();
        auto weights =
          tensor::make(bench_.memory(), value.dims(), value.type());
        for (std::int64_t i = 0; i < weights.numel(); ++i)
          set_number(weights, i, number(random));
        weights_.emplace(result, weights);
        bench_[gradient_name(result)].set(std::move(weights));
      }
  }

  bool is_read(const std::string& name) const {
    return std::ranges::any_of(backward_, [&](const op_desc& op) {
      const auto names = op.input_names();
      return std::ranges::find(names, name) != names.end();
    });
  }

  /// The sum of the results with these weights.
  double weighted_sum() {
    bench_.run(forward_);
    double sum = 0;
    for (auto& [result, weights] : weights_) {
      const auto& value = bench_[result].as_tensor();
      for (std::int64_t i = 0; i < value.numel(); ++i)
        sum += number_at(value, i) * number_at(weights, i);
    }
    return sum;
  }

  double difference(tensor& input, std::int64_t i) {
    const auto middle = number_at(input, i);
    set_number(input, i, middle + rule_.step);
    const auto right = number_at(input, i), above = weighted_sum();
    set_number(input, i, middle - rule_.step);
    const auto left = number_at(input, i), below = weighted_sum();
    set_number(input, i, middle);
    return (above - below) / (right - left);
  }

  /// @param slot,index an output of the gradient op
  std::optional<wrong_gradient> compare(const op_desc& op, const op_slot& slot,
                                        std::size_t index) {
    const auto input = inputs_.find(slot.arguments[index]);
    if (input == inputs_.end()) // a value between gradient ops
      return std::nullopt;
    const auto name = slot.name.substr(0, slot.name.rfind("@GRAD"));
    const auto given = dense(bench_[input->first], bench_.memory());
    if (given.dims() != input->second.dims())
      throw error(errc::shape_mismatch,
                  "the gradient of " + name + " has shape "
                    + to_string(given.dims()) + ", but " + name + " has "
                    + to_string(input->second.dims()),
                  {.op_type = op.type, .variable = input->first});
    std::vector<double> expected;
    double largest = 0;
    for (std::int64_t i = 0; i < given.numel(); ++i) {
      expected.push_back(difference(input->second, i));
      largest = std::max(largest, std::abs(expected.back()));
    }
    const auto allowed =
      rule_.tolerance * std::max(largest, rule_.smallest_magnitude);
    for (std::int64_t i = 0; i < given.numel(); ++i) {
      const auto wanted = expected[static_cast<std::size_t>(i)];
      // A NaN is wrong too.
      if (!(std::abs(number_at(given, i) - wanted) <= allowed))
        return wrong_gradient{
          op.type, name, index, position(given.dims(), i), number_at(given, i),
          wanted};
    }
    return std::nullopt;
  }

  const gradient_case& what_;
  difference_rule rule_;
  op_bench bench_;
  op_desc forward_;
  std::vector<op_desc> backward_;
  std::map<std::string, tensor> inputs_;  ///< by the name of their gradient
  std::map<std::string, tensor> weights_; ///< by result
};

} // namespace

std::string to_string(const wrong_gradient& wrong) {
  const auto number = [](double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return std::string{text};
  };
  return wrong.op + ": the gradient of " + wrong.input
         + (wrong.variable > 0 ? "[" + std::to_string(wrong.variable) + "]"
                               : std::string{})
         + " at " + to_string(wrong.element) + " is " + number(wrong.computed)
         + ", but differences give " + number(wrong.expected);
}

std::optional<wrong_gradient>
find_wrong_gradient(const op_schema_table& schemas, const kernel_table& kernels,
                    const gradient_case& what) {
  return checked_op{schemas, kernels, what}.find();
}

} // namespace troupe::graph

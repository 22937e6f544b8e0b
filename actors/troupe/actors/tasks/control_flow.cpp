// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tasks/control_flow.hpp>

#include <troupe/actors/tasks/block_runner.hpp>
#include <troupe/base/error.hpp>
#include <troupe/graph/argument.hpp>
#include <troupe/graph/merging/gathered_product.hpp>
#include <troupe/graph/merging/merging_update.hpp>
#include <troupe/graph/passes/accumulate_gradients.hpp>
#include <troupe/graph/sub_blocks.hpp>
#include <troupe/kernels/lod_sharing.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace troupe::actors {

namespace {

using names = std::vector<std::string>;

bool truth_of(const tensor& value, std::string_view slot) {
  if (value.type() != dtype::boolean || value.numel() != 1)
    throw error(errc::shape_mismatch,
                std::string{slot} + " " + to_string(value.dims()) + " of "
                  + std::string{to_string(value.type())}
                  + " is no condition: expected one bool");
  return value.data<bool>()[0];
}

/// A copy that shares the value's memory, which is then no longer written in
/// place.
variable shared_copy(const variable& from) {
  variable copy;
  if (from.is_tensor() && from.as_tensor()) {
    copy.set(from.as_tensor().share());
  } else if (from.is_rows()) {
    auto rows = from.as_rows();
    rows.values = rows.values.share();
    rows.numbers = rows.numbers.share();
    copy.set(std::move(rows));
  } else if (from.is_array()) {
    auto array = from.as_array();
    for (auto& entry : array)
      entry = entry.share();
    copy.set(std::move(array));
  }
  return copy;
}

tensor zeros_like(const tensor& value, arena& memory) {
  auto zeros = tensor::make(memory, value.dims(), value.type());
  if (auto bytes = zeros.bytes())
    std::memset(zeros.raw(), 0, bytes);
  zeros.set_levels(value.levels());
  return zeros;
}

/// Sets `target` to zeros with the shape of `like`, if `like` has a value.
void set_zeros(variable& target, const variable& like, arena& memory) {
  if (like.is_tensor() && like.as_tensor()) {
    target.set(zeros_like(like.as_tensor(), memory));
  } else if (like.is_array()) {
    tensor_array zeros;
    for (auto& entry : like.as_array())
      zeros.push_back(entry ? zeros_like(entry, memory) : tensor{});
    target.set(std::move(zeros));
  }
}

bool holds_nothing(const variable& value) {
  return !value.has_value() || (value.is_tensor() && !value.as_tensor())
         || (value.is_array()
             && std::ranges::none_of(value.as_array(),
                                     [](auto& t) { return bool{t}; }));
}

/// Common base of ops with a block: the block, its scope, its device.
class control_flow_kernel : public kernel {
public:
  control_flow_kernel(const graph::program& p, const graph::op_desc& op,
                      const kernel_table& kernels, device_kind kind)
    : op_(op), block_(p, *graph::sub_block_of(op), kernels, kind),
      sum_(kernels.make("sum", kind, no_attributes_)) {}

protected:
  static variable& argument(const outer_arguments& outer,
                            const std::string& name) {
    if (auto* found = outer.find(name))
      return *found;
    throw error(errc::graph_invalid, "an argument is missing",
                {.variable = name});
  }

  void run_block(scope& inside, const outer_arguments& outer,
                 kernel_context& ctx) {
    block_.run({inside, block_.locals(), outer}, ctx);
  }

  /// Takes the scopes that a forward op left in slot `slot`; empty if it did
  /// not run.
  std::vector<std::shared_ptr<scope>> take_scopes(const kernel_context& ctx,
                                                  const outer_arguments& outer,
                                                  std::string_view slot) const {
    if (!ctx.has_input(slot))
      return {};
    auto& value = argument(outer, op_.input(slot).front());
    if (!value.is_scopes())
      return {};
    return std::exchange(value.as_scopes().steps, {});
  }

  /// to += from; a `to` without value becomes `from`.
  void accumulate(variable& to, const variable& from, kernel_context& ctx) {
    if (holds_nothing(from))
      return;
    if (holds_nothing(to)) {
      to = shared_copy(from);
      return;
    }
    // These share the values' memory: a sum can be written to one of its terms.
    auto before = to;
    auto now = from;
    const argument_list inputs{{"X", "", &before}, {"X", "", &now}};
    const argument_list outputs{{"Out", "", &to}};
    kernel_context sum{ctx.on(), ctx.queue(), no_attributes_,
                       inputs,   outputs,     ctx.step()};
    run_kernel(*sum_, sum_rule_, sum);
  }

  graph::op_desc op_;
  block_runner block_;

private:
  attribute_map no_attributes_;
  std::unique_ptr<kernel> sum_;
  lod_rule sum_rule_ = lod_rule_of("sum");
};

// -- conditional_block --------------------------------------------------------

/// True if Cond holds; without a scalar condition, if all inputs have elements.
bool is_taken(const kernel_context& ctx) {
  if (ctx.attributes().get_bool("is_scalar_condition", false))
    return truth_of(ctx.input("Cond"), "Cond");
  for (std::size_t i = 0; i < ctx.num_inputs("Input"); ++i)
    if (ctx.has_input("Input", i) && ctx.input("Input", i).numel() == 0)
      return false;
  return true;
}

class conditional_kernel final : public control_flow_kernel {
public:
  using control_flow_kernel::control_flow_kernel;
  void run(kernel_context& ctx) override {
    const bool taken = is_taken(ctx);
    step_scopes scopes;
    if (taken) {
      scopes.steps.push_back(std::make_shared<scope>());
      run_block(*scopes.steps.front(), outer_arguments{ctx}, ctx);
    }
    if (ctx.has_output("Scope"))
      ctx.output_variable("Scope").set(std::move(scopes));
  }
};

class conditional_grad_kernel final : public control_flow_kernel {
public:
  using control_flow_kernel::control_flow_kernel;

  void run(kernel_context& ctx) override {
    const outer_arguments outer{ctx};
    const auto scopes = take_scopes(ctx, outer, "Scope");
    if (!scopes.empty())
      run_block(*scopes.front(), outer, ctx);
    const auto& inputs = op_.input("Input");
    const auto& gradients = op_.output("Input@GRAD");
    for (std::size_t i = 0; i < gradients.size() && i < inputs.size(); ++i)
      if (graph::names_variable(gradients[i]))
        hand_out(scopes.empty() ? nullptr : scopes.front().get(), inputs[i],
                 argument(outer, gradients[i]), outer, ctx);
  }

private:
  static void hand_out(scope* inside, const std::string& input,
                       variable& gradient, const outer_arguments& outer,
                       const kernel_context& ctx) {
    const auto* computed =
      inside ? inside->find(graph::gradient_name(input)) : nullptr;
    if (computed && !holds_nothing(*computed))
      gradient = shared_copy(*computed);
    else
      set_zeros(gradient, argument(outer, input), ctx.on().memory());
  }
};

// -- while --------------------------------------------------------------------

/// Variables that an op of the block both reads and writes.
std::set<std::string> updated_in_place(const graph::block& block) {
  std::set<std::string> updated;
  for (auto& op : block.ops) {
    if (graph::sub_block_of(op))
      continue;
    const auto in = op.input_names();
    const std::set<std::string_view> read{in.begin(), in.end()};
    for (auto& name : op.output_names())
      if (read.contains(name))
        updated.insert(name);
  }
  return updated;
}

/// Inputs whose values before a round the gradient needs: all except parameters
/// and variables that an op of the block updates in place. The gradient op of
/// an in-place update undoes it.
names inputs_to_keep(const graph::program& p, const graph::op_desc& op) {
  const auto in_place = updated_in_place(
    p.blocks[static_cast<std::size_t>(*graph::sub_block_of(op))]);
  names kept;
  for (auto& name : op.input("X")) {
    const auto* var = p.main().find_var(name);
    if (graph::names_variable(name) && !(var && var->is_parameter)
        && !in_place.contains(name))
      kept.push_back(name);
  }
  return kept;
}

class while_kernel final : public control_flow_kernel {
public:
  while_kernel(const graph::program& p, const graph::op_desc& op,
               const kernel_table& kernels, device_kind kind)
    : control_flow_kernel(p, op, kernels, kind), keep_(inputs_to_keep(p, op)),
      for_gradient_(!op.attributes.get_bool("is_test", false)
                    && !op.output("StepScopes").empty()) {}

  void run(kernel_context& ctx) override {
    const outer_arguments outer{ctx};
    step_scopes scopes;
    while (truth_of(ctx.input("Condition"), "Condition")) {
      if (ctx.step().stopped()) // a block without ops does not check this
        throw error(errc::cancelled, "stopped between rounds of a loop");
      auto inside = std::make_shared<scope>();
      auto kept = for_gradient_ ? keep(outer) : std::vector<variable>{};
      run_block(*inside, outer, ctx);
      for (std::size_t i = 0; i < kept.size(); ++i)
        if (kept[i].has_value())
          inside->var(keep_[i]) = std::move(kept[i]);
      if (for_gradient_)
        scopes.steps.push_back(std::move(inside));
    }
    if (ctx.has_output("StepScopes"))
      ctx.output_variable("StepScopes").set(std::move(scopes));
  }

private:
  std::vector<variable> keep(const outer_arguments& outer) const {
    std::vector<variable> kept;
    for (auto& name : keep_) {
      const auto& value = argument(outer, name);
      kept.push_back(value.is_tensor() ? shared_copy(value) : variable{});
    }
    return kept;
  }

  names keep_;
  bool for_gradient_;
};

/// Runs the gradient block round by round, last first. A gradient of Out is
/// linked into each round's scope. Gradients of X are added up over the rounds.
/// Gradients that belong to both are passed from round to round.
class while_grad_kernel final : public control_flow_kernel {
public:
  while_grad_kernel(const graph::program& p, const graph::op_desc& op,
                    const kernel_table& kernels, device_kind kind)
    : control_flow_kernel(p, op, kernels, kind), outside_(op.input("Out@GRAD")),
      inside_(op.attributes.get_strings("original_output_grad")),
      x_(op.input("X")), gradients_(op.output("X@GRAD")) {
    if (outside_.size() != inside_.size() || x_.size() != gradients_.size())
      throw error(errc::graph_invalid,
                  "while_grad has slots and attributes of different length");
    passing_.insert(outside_.begin(), outside_.end());
    for (auto& name : op_.input("Out"))
      forward_.try_emplace(graph::gradient_name(name), name);
    for (auto& name : inside_)
      block_.add_local(name);
  }

  void run(kernel_context& ctx) override {
    const outer_arguments outer{ctx};
    auto scopes = take_scopes(ctx, outer, "StepScopes");
    clear_sums(outer);
    for (; !scopes.empty(); scopes.pop_back()) {
      if (ctx.step().stopped())
        throw error(errc::cancelled, "stopped between rounds of a loop");
      auto& inside = *scopes.back();
      link(inside, outer, ctx);
      run_block(inside, outer, ctx);
      collect(inside, outer, ctx);
    }
    for (std::size_t i = 0; i < gradients_.size(); ++i)
      if (graph::names_variable(gradients_[i]))
        if (auto& gradient = argument(outer, gradients_[i]);
            holds_nothing(gradient))
          set_zeros(gradient, argument(outer, x_[i]), ctx.on().memory());
  }

private:
  bool passes_through(const std::string& gradient) const {
    return passing_.contains(gradient);
  }

  void clear_sums(const outer_arguments& outer) const {
    for (auto& gradient : gradients_)
      if (graph::names_variable(gradient) && !passes_through(gradient))
        argument(outer, gradient).clear();
  }

  void link(scope& inside, const outer_arguments& outer,
            const kernel_context& ctx) const {
    for (std::size_t i = 0; i < outside_.size(); ++i) {
      auto& target = inside.var(inside_[i]);
      const auto& source = argument(outer, outside_[i]);
      if (!holds_nothing(source))
        target = shared_copy(source);
      else if (const auto* like = forward_of(outside_[i], outer))
        set_zeros(target, *like, ctx.on().memory());
    }
  }

  /// The forward variable of a gradient that was not computed.
  const variable* forward_of(const std::string& gradient,
                             const outer_arguments& outer) const {
    const auto name = forward_.find(gradient);
    return name == forward_.end() ? nullptr : outer.find(name->second);
  }

  void collect(scope& inside, const outer_arguments& outer,
               kernel_context& ctx) {
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      if (!graph::names_variable(gradients_[i]))
        continue;
      const auto pass = passes_through(gradients_[i]);
      const auto name = pass ? gradients_[i] : graph::gradient_name(x_[i]);
      const auto* computed = inside.find(name);
      if (computed == nullptr || holds_nothing(*computed))
        continue;
      auto& gradient = argument(outer, gradients_[i]);
      if (pass)
        gradient = shared_copy(*computed);
      else
        accumulate(gradient, *computed, ctx);
    }
  }

  names outside_;
  names inside_;
  names x_;
  names gradients_;
  std::set<std::string> passing_;              ///< names in `outside_`
  std::map<std::string, std::string> forward_; ///< by the name of its gradient
};

// -- table --------------------------------------------------------------------

template <class Kernel>
std::unique_ptr<kernel> make(const graph::program& p, const graph::op_desc& op,
                             const kernel_table& kernels, device_kind kind) {
  return std::make_unique<Kernel>(p, op, kernels, kind);
}

struct control_flow_op {
  std::string_view type;
  std::unique_ptr<kernel> (*make)(const graph::program&, const graph::op_desc&,
                                  const kernel_table&, device_kind);
};

constexpr std::array<control_flow_op, 5> control_flow_ops = {{
  {"conditional_block", make<conditional_kernel>},
  {"conditional_block_infer", make<conditional_kernel>},
  {"conditional_block_grad", make<conditional_grad_kernel>},
  {"while", make<while_kernel>},
  {"while_grad", make<while_grad_kernel>},
}};

const control_flow_op* find_op(std::string_view type) {
  const auto found =
    std::ranges::find(control_flow_ops, type, &control_flow_op::type);
  return found == control_flow_ops.end() ? nullptr : &*found;
}

} // namespace

std::unique_ptr<kernel> make_op_kernel(const graph::program& p,
                                       const graph::op_desc& op,
                                       const kernel_table& kernels,
                                       device_kind kind) {
  if (kernels.has(op.type, kind))
    return kernels.make(op.type, kind, op.attributes);
  const auto* flow = find_op(op.type);
  if (flow && !graph::sub_block_of(op))
    throw error(errc::graph_invalid, "op " + op.type + " names no block",
                {.op_type = op.type});
  return flow ? flow->make(p, op, kernels, kind)
              : kernels.make(op.type, kind, op.attributes);
}

bool takes_absent_inputs(std::string_view op_type) {
  return graph::is_control_flow(op_type) || op_type == "select_input"
         || op_type == graph::gathered_product_type
         || op_type == graph::accumulate_type
         || graph::is_merging_update(op_type);
}

} // namespace troupe::actors

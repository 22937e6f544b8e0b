// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/gradients.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/dtype_number.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace troupe::graph {

namespace {

using name_set = std::set<std::string, std::less<>>;

error_context where(const op_desc& op, std::string_view variable) {
  error_context at;
  at.op_type = op.type;
  at.variable = variable;
  at.call_stack = op.call_stack();
  return at;
}

error_context where(std::string_view variable) {
  error_context at;
  at.variable = variable;
  return at;
}

/// The variable that `gradient` (x@GRAD, x@GRAD@RENAME@...) belongs to.
std::string variable_of(std::string_view gradient) {
  return std::string{gradient.substr(0, gradient.rfind("@GRAD"))};
}

/// Calls `visit(name)` for each argument of the given slots.
template <class Slots, class Visit>
void for_each_argument(const std::vector<op_slot>& of, const Slots& slots,
                       Visit visit) {
  for (const auto& slot : of)
    if (std::ranges::find(slots, slot.name) != slots.end())
      for (const auto& name : slot.arguments)
        visit(name);
}

/// The variable that is fed with the gradient of an output.
std::string given_name(std::string_view output) {
  return gradient_name(output) + "@GIVEN";
}

/// Differentiates one main block. Works on a copy, so that an error leaves the
/// caller's program unchanged.
class backward_pass {
public:
  backward_pass(const block& b, const op_schema_table& schemas)
    : block_(b), schemas_(schemas) {}

  std::vector<parameter_gradient> run(std::string_view loss) {
    last_op_ = mark_loss(loss);
    mark_wanted({});
    if (!wanted_.contains(loss))
      throw error{errc::invalid_argument,
                  "the loss '" + std::string{loss}
                    + "' depends on no trained parameter",
                  where(loss)};
    start_at_loss(std::string{loss});
    append_rest();
    return collect();
  }

  output_gradients run(std::span<const std::string> outputs,
                       std::span<const std::string> inputs) {
    last_op_ = last_writer(outputs);
    mark_wanted(inputs);
    output_gradients made;
    for (const auto& name : outputs)
      made.given.push_back(wanted_.contains(name) ? start_at(name)
                                                  : std::string{});
    if (live_.empty())
      throw error{errc::invalid_argument,
                  "no output depends on a trained parameter or on an input "
                  "whose gradient is wanted"};
    append_rest();
    for (const auto& name : inputs)
      made.inputs.push_back(live_.contains(name) ? gradient_name(name)
                                                 : std::string{});
    made.parameters = collect();
    return made;
  }

  block take() { return std::move(block_); }

private:
  std::size_t writer_of(std::string_view name) const;
  void require_no_gradient(std::string_view name) const;
  std::size_t mark_loss(std::string_view loss);
  std::size_t last_writer(std::span<const std::string> outputs) const;
  void mark_wanted(std::span<const std::string> inputs);
  void mark_outputs(const op_desc& op, const gradient_rule& rule);
  void start_at_loss(const std::string& name);
  std::string start_at(const std::string& output);
  void append_rest();
  void differentiate(const op_desc& forward);
  bool is_live(const op_desc& forward, const gradient_rule& rule) const;
  void add_zero_gradients(const op_desc& forward, const gradient_rule& rule);
  void append(op_desc op, const op_desc& forward);
  void join();
  void append_sum(const std::string& gradient,
                  const std::vector<std::string>& terms, const op_desc& last);
  void declare();
  var_kind kind_of(const op_desc& op) const;
  void name_parameters();
  std::vector<parameter_gradient> collect() const;

  bool reads_wanted(const op_desc& op, const gradient_rule& rule) const {
    bool found = false;
    for (const auto& group : rule.groups)
      for_each_argument(op.inputs, group, [&](const std::string& name) {
        found = found || wanted_.contains(name);
      });
    return found;
  }
  bool is_trained(const std::string& name) const {
    auto var = block_.find_var(name);
    return var && var->is_parameter && !var->stop_gradient;
  }

  block block_;
  const op_schema_table& schemas_;
  std::size_t last_op_ = 0; // that is differentiated
  /// Trained parameters, inputs whose gradients are wanted, and the variables
  /// that depend differentiably on one.
  name_set wanted_;
  /// The wanted variables that the loss or an output depends on: they have a
  /// gradient.
  name_set live_;
  std::vector<op_desc> gradients_;
};

/// The last op that writes it.
std::size_t backward_pass::writer_of(std::string_view name) const {
  for (auto i = block_.ops.size(); i-- > 0;)
    if (std::ranges::count(block_.ops[i].output_names(), name) > 0)
      return i;
  throw error{errc::not_found, "no op writes '" + std::string{name} + "'",
              where(name)};
}

void backward_pass::require_no_gradient(std::string_view name) const {
  if (block_.find_var(gradient_name(name)))
    throw error{errc::invalid_argument,
                "the program has gradients of '" + std::string{name}
                  + "' already",
                where(name)};
}

std::size_t backward_pass::mark_loss(std::string_view loss) {
  const auto& var = block_.var(loss);
  if (std::ranges::any_of(var.dims, [](auto extent) { return extent != 1; }))
    throw error{errc::shape_mismatch,
                "the loss '" + std::string{loss}
                  + "' must have one element, not shape " + to_string(var.dims),
                where(loss)};
  require_no_gradient(loss);
  const auto writer = writer_of(loss);
  auto& op = block_.ops[writer];
  op.attributes.set("op_role", op.role() | role_loss);
  return writer;
}

std::size_t
backward_pass::last_writer(std::span<const std::string> outputs) const {
  std::size_t last = 0;
  name_set seen;
  for (const auto& name : outputs) {
    block_.var(name);
    require_no_gradient(name);
    if (!seen.insert(name).second)
      throw error{errc::invalid_argument, "an output is named twice",
                  where(name)};
    last = std::max(last, writer_of(name));
  }
  return last;
}

void backward_pass::mark_wanted(std::span<const std::string> inputs) {
  for (const auto& [name, var] : block_.vars)
    if (is_trained(name))
      wanted_.insert(name);
  for (const auto& name : inputs) {
    if (!is_floating(block_.var(name).type))
      throw error{errc::invalid_argument,
                  "an input of type "
                    + std::string{to_string(block_.var(name).type)}
                    + " has no gradient",
                  where(name)};
    wanted_.insert(name);
  }
  for (std::size_t i = 0; !block_.ops.empty() && i <= last_op_; ++i) {
    const auto& op = block_.ops[i];
    const auto& rule = find_schema(schemas_, op).gradient;
    if (reads_wanted(op, rule))
      mark_outputs(op, rule);
  }
}

void backward_pass::mark_outputs(const op_desc& op, const gradient_rule& rule) {
  for_each_argument(op.outputs, rule.outputs, [&](const std::string& name) {
    const auto& var = block_.var(name);
    if (var.stop_gradient || !is_floating(var.type))
      return;
    if (!wanted_.insert(name).second)
      throw error{errc::graph_invalid,
                  "'" + name
                    + "' is written twice; its gradient is not defined",
                  where(op, name)};
  });
}

void backward_pass::start_at_loss(const std::string& name) {
  const auto& loss = block_.var(name);
  op_desc op;
  op.type = "fill_constant";
  op.set_output("Out", {gradient_name(name)});
  op.attributes = {
    {"shape", std::vector<std::int64_t>(loss.dims.begin(), loss.dims.end())},
    {"dtype", dtype_number(loss.type)},
    {"value", 1.0f}};
  append(std::move(op), block_.ops[last_op_]);
  gradients_.back().attributes.set("op_role",
                                   std::int32_t{role_backward | role_loss});
  live_.insert(name);
}

/// The gradient that is fed is one term of the output's: other outputs may
/// depend on it too.
std::string backward_pass::start_at(const std::string& output) {
  auto given = block_.var(output);
  given.name = given_name(output);
  given.persistable = given.is_parameter = false;
  given.need_check_feed = true;
  op_desc op;
  op.type = "assign";
  op.set_input("X", {given.name});
  op.set_output("Out", {gradient_name(output)});
  append(std::move(op), block_.ops[writer_of(output)]);
  live_.insert(output);
  return block_.add_var(std::move(given)).name;
}

void backward_pass::append_rest() {
  for (auto i = last_op_ + 1; i-- > 0;)
    differentiate(block_.ops[i]);
  join();
  declare();
  name_parameters();
  std::ranges::move(gradients_, std::back_inserter(block_.ops));
}

void backward_pass::differentiate(const op_desc& forward) {
  const auto& schema = find_schema(schemas_, forward);
  if (!is_live(forward, schema.gradient))
    return;
  add_zero_gradients(forward, schema.gradient);
  auto wanted = [this](const std::string& name) {
    return wanted_.contains(name);
  };
  for (auto& op : make_gradient(schema, {forward, wanted})) {
    for (const auto& gradient : op.output_names())
      if (const auto name = variable_of(gradient);
          wanted(name) && gradient == gradient_name(name))
        live_.insert(name);
    append(std::move(op), forward);
  }
}

bool backward_pass::is_live(const op_desc& forward,
                            const gradient_rule& rule) const {
  bool live = false;
  for_each_argument(
    forward.outputs, rule.outputs,
    [&](const std::string& name) { live = live || live_.contains(name); });
  return live && reads_wanted(forward, rule);
}

/// If only some outputs of an op lead to the loss, the gradients of the others
/// are zero.
void backward_pass::add_zero_gradients(const op_desc& forward,
                                       const gradient_rule& rule) {
  for_each_argument(
    forward.outputs, rule.outputs, [&](const std::string& name) {
      if (live_.contains(name))
        return;
      op_desc zero;
      zero.type = "scale";
      zero.set_input("X", {name});
      zero.set_output("Out", {gradient_name(name)});
      zero.attributes = {
        {"scale", 0.0f}, {"bias", 0.0f}, {"bias_after_scale", true}};
      append(std::move(zero), forward);
    });
}

void backward_pass::append(op_desc op, const op_desc& forward) {
  op.attributes.erase("op_role_var");
  op.attributes.set("op_role", std::int32_t{role_backward});
  op.attributes.set("op_callstack", forward.call_stack());
  gradients_.push_back(std::move(op));
}

/// If several ops write a gradient, gives each term its own name and appends
/// their sum after the last of them. Terms of gradients that nobody needs are
/// renamed but not summed.
void backward_pass::join() {
  std::map<std::string, std::size_t> writers;
  for (const auto& op : gradients_)
    for (const auto& name : op.output_names())
      ++writers[name];
  std::map<std::string, std::vector<std::string>> terms;
  for (auto& op : std::exchange(gradients_, {})) {
    std::vector<std::string> complete;
    for (auto& slot : op.outputs)
      for (auto& name : slot.arguments)
        if (const auto count = writers[name]; count > 1) {
          auto& list = terms[name];
          list.push_back(name + "@RENAME@block" + std::to_string(block_.index)
                         + "@" + std::to_string(list.size()));
          if (list.size() == count && live_.contains(variable_of(name)))
            complete.push_back(name);
          name = list.back();
        }
    gradients_.push_back(std::move(op));
    const auto last = gradients_.back();
    for (const auto& gradient : complete)
      append_sum(gradient, terms[gradient], last);
  }
}

void backward_pass::append_sum(const std::string& gradient,
                               const std::vector<std::string>& terms,
                               const op_desc& last) {
  op_desc sum;
  sum.type = "sum";
  sum.set_input("X", terms);
  sum.set_output("Out", {gradient});
  append(std::move(sum), last);
}

void backward_pass::declare() {
  for (const auto& op : gradients_)
    for (const auto& name : op.output_names()) {
      auto desc = block_.var(variable_of(name));
      desc.name = name;
      desc.kind = kind_of(op);
      desc.persistable = desc.is_parameter = desc.need_check_feed = false;
      desc.stop_gradient = false;
      block_.add_var(std::move(desc));
    }
}

/// Sparse gradients of an embedding stay sparse unless a dense gradient is
/// added to them.
var_kind backward_pass::kind_of(const op_desc& op) const {
  if (op.type == "sum") {
    const auto& terms = op.input("X");
    const bool rows = std::ranges::all_of(terms, [this](const auto& name) {
      return block_.var(name).kind == var_kind::selected_rows;
    });
    return rows ? var_kind::selected_rows : var_kind::dense;
  }
  if ((op.type != "lookup_table_grad" && op.type != "lookup_table_v2_grad")
      || !op.attributes.get_bool("is_sparse", false))
    return var_kind::dense;
  const auto& table = op.only_input("W");
  if (!is_trained(table))
    throw error{errc::graph_invalid,
                "the embedding of '" + table
                  + "' is sparse, but only a parameter can have a sparse "
                    "gradient",
                where(op, table)};
  return var_kind::selected_rows;
}

void backward_pass::name_parameters() {
  for (auto& op : gradients_) {
    std::vector<std::string> pairs;
    for (const auto& gradient : op.output_names()) {
      auto name = variable_of(gradient);
      if (is_trained(name) && gradient == gradient_name(name)) {
        pairs.push_back(std::move(name));
        pairs.push_back(gradient);
      }
    }
    if (!pairs.empty())
      op.attributes.set("op_role_var", std::move(pairs));
  }
}

std::vector<parameter_gradient> backward_pass::collect() const {
  std::vector<parameter_gradient> found;
  name_set seen;
  for (std::size_t i = 0; i <= last_op_; ++i)
    for (const auto& name : block_.ops[i].input_names())
      if (is_trained(name) && live_.contains(name) && seen.insert(name).second)
        found.push_back({name, gradient_name(name)});
  return found;
}

} // namespace

std::vector<parameter_gradient>
append_backward(program& p, std::string_view loss,
                const op_schema_table& schemas) {
  backward_pass pass{p.main(), schemas};
  auto found = pass.run(loss);
  p.main() = pass.take();
  return found;
}

output_gradients append_gradients(program& p,
                                  std::span<const std::string> outputs,
                                  std::span<const std::string> inputs,
                                  const op_schema_table& schemas) {
  backward_pass pass{p.main(), schemas};
  auto made = pass.run(outputs, inputs);
  p.main() = pass.take();
  return made;
}

} // namespace troupe::graph

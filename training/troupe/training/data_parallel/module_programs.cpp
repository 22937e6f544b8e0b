// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data_parallel/module_programs.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/schemas/second_derivatives.hpp>
#include <troupe/graph/sub_blocks.hpp>
#include <troupe/training/output_program.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace troupe {

namespace {

using name_set = std::set<std::string, std::less<>>;
using graph::op_desc;
using graph::program;

std::int32_t role_of(const op_desc& op) {
  return op.role() & ~graph::role_loss;
}

bool is_persistable(const program& p, const std::string& name) {
  const auto* var = p.main().find_var(name);
  return var && var->persistable;
}

void check_names(const module_description& from) {
  if (from.outputs.empty())
    throw error(errc::invalid_argument, "a module without outputs");
  const auto& block = from.main.main();
  for (auto& name : from.inputs) {
    block.var(name);
    for (auto& op : block.ops)
      if (std::ranges::count(op.output_names(), name) > 0)
        throw error(errc::invalid_argument,
                    "an op writes it, so it is no input of the module",
                    {.op_type = op.type, .variable = name});
  }
  for (auto& name : from.input_gradients)
    if (std::ranges::find(from.inputs, name) == from.inputs.end())
      throw error(errc::invalid_argument,
                  "its gradient is wanted, but it is no input of the module",
                  {.variable = name});
}

/// Removes the ops that the inputs do not suffice for.
void drop_ops_without_inputs(program& p, const module_description& from) {
  name_set known{from.inputs.begin(), from.inputs.end()};
  const auto is_known = [&](const std::string& name) {
    return known.contains(name) || is_persistable(p, name);
  };
  std::erase_if(p.main().ops, [&](const op_desc& op) {
    const auto reads = op.input_names();
    if (!std::ranges::all_of(reads, is_known))
      return true;
    const auto writes = op.output_names();
    known.insert(writes.begin(), writes.end());
    return false;
  });
}

/// Names the input that an output lacks, if one does.
void require_outputs(const program& all, const program& possible,
                     const module_description& from) {
  const auto computed = [&](const std::string& name) {
    return std::ranges::any_of(possible.main().ops, [&](const op_desc& op) {
      return std::ranges::count(op.output_names(), name) > 0;
    });
  };
  for (auto& name : from.outputs) {
    if (computed(name))
      continue;
    const auto needed = make_output_program(all, std::vector{name});
    for (auto& feed : graph::feed_names(needed))
      if (std::ranges::find(from.inputs, feed) == from.inputs.end())
        throw error(errc::not_found,
                    "the output " + name
                      + " needs it, but it is no input of "
                        "the module",
                    {.variable = feed});
  }
}

/// Removes declarations that no op uses, but for those of `used`.
void drop_unused(program& p, name_set used = {}) {
  for (auto& b : p.blocks)
    for (auto& op : b.ops) {
      const auto reads = op.input_names(), writes = op.output_names();
      used.insert(reads.begin(), reads.end());
      used.insert(writes.begin(), writes.end());
    }
  for (auto& b : p.blocks)
    std::erase_if(b.vars,
                  [&](auto& entry) { return !used.contains(entry.first); });
}

/// The ops that outputs need, and those that update persistable variables.
program forward_part(const module_description& from) {
  auto all = graph::expose_sub_blocks(from.main);
  std::erase_if(all.main().ops, [](const op_desc& op) {
    return role_of(op) != graph::role_forward || op.type == "feed"
           || op.type == "fetch";
  });
  auto possible = all;
  drop_ops_without_inputs(possible, from);
  require_outputs(all, possible, from);
  auto wanted = from.outputs;
  for (auto& op : possible.main().ops)
    for (auto& name : op.output_names())
      if (is_persistable(all, name))
        wanted.push_back(name);
  auto made = make_output_program(possible, wanted);
  drop_unused(made, {from.inputs.begin(), from.inputs.end()});
  return made;
}

void make_persistable(program& p, const std::vector<std::string>& names) {
  for (auto& name : names)
    if (auto* var = p.main().find_var(name))
      var->persistable = true;
}

module_programs::program_ptr shared(program p) {
  drop_unused(p);
  return std::make_shared<const program>(std::move(p));
}

void find_state(module_programs& made, const program& forward) {
  name_set parameters, buffers;
  for (auto& op : forward.main().ops)
    for (auto& names : {op.input_names(), op.output_names()})
      for (auto& name : names)
        if (is_persistable(forward, name))
          (forward.main().var(name).is_parameter ? parameters : buffers)
            .insert(name);
  made.parameters.assign(parameters.begin(), parameters.end());
  made.buffers.assign(buffers.begin(), buffers.end());
}

/// What the ops from number `first` on read of what earlier ops or others have
/// written.
std::vector<std::string>
read_from_before(const program& p, std::size_t first,
                 const std::vector<std::string>& given) {
  name_set own{given.begin(), given.end()}, before;
  const auto& ops = p.main().ops;
  for (auto i = first; i < ops.size(); ++i) {
    for (auto& name : ops[i].input_names())
      if (!own.contains(name))
        before.insert(name);
    for (auto& name : ops[i].output_names())
      own.insert(name);
  }
  return {before.begin(), before.end()};
}

bool has_gradients(const module_description& from, const module_programs& made,
                   const program& forward) {
  return !from.input_gradients.empty() || !from.buffer_gradients.empty()
         || std::ranges::any_of(made.parameters, [&](auto& name) {
              return !forward.main().var(name).stop_gradient;
            });
}

std::vector<std::string> floating_outputs(const module_description& from,
                                          const program& forward) {
  std::vector<std::string> found;
  std::ranges::copy_if(
    from.outputs, std::back_inserter(found),
    [&](auto& name) { return is_floating(forward.main().var(name).type); });
  return found;
}

/// Adds the gradients of buffers: of the variables from number `first` on.
void add_buffers(std::vector<graph::parameter_gradient>& to,
                 const std::vector<std::string>& variables,
                 const std::vector<std::string>& gradients, std::size_t first) {
  for (auto i = first; i < variables.size(); ++i)
    if (!gradients[i].empty())
      to.push_back({variables[i], gradients[i]});
}

void add_backward(module_programs& made, const module_description& from,
                  const program& forward) {
  made.given.resize(from.outputs.size());
  made.input_gradients.resize(from.inputs.size());
  const auto outputs = floating_outputs(from, forward);
  if (outputs.empty() || !has_gradients(from, made, forward))
    return;
  auto whole = forward;
  auto wanted = from.input_gradients;
  std::ranges::copy(from.buffer_gradients, std::back_inserter(wanted));
  const auto gradients =
    graph::append_gradients(whole, outputs, wanted, from.schemas);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    made.given[static_cast<std::size_t>(
      std::ranges::find(from.outputs, outputs[i]) - from.outputs.begin())] =
      gradients.given[i];
  for (std::size_t i = 0; i < from.input_gradients.size(); ++i)
    made.input_gradients[static_cast<std::size_t>(
      std::ranges::find(from.inputs, from.input_gradients[i])
      - from.inputs.begin())] = gradients.inputs[i];
  made.gradients = gradients.parameters;
  add_buffers(made.gradients, wanted, gradients.inputs,
              from.input_gradients.size());
  made.kept = read_from_before(whole, forward.main().ops.size(), made.given);
  made.both = std::make_shared<const program>(whole);
  made.schemas = from.schemas;
  auto& ops = whole.main().ops;
  ops.erase(ops.begin(),
            ops.begin() + static_cast<long>(forward.main().ops.size()));
  make_persistable(whole, made.kept);
  make_persistable(whole, made.given);
  make_persistable(whole, made.input_gradients);
  for (auto& g : made.gradients)
    make_persistable(whole, {g.gradient});
  made.backward = shared(std::move(whole));
}

void find_temporaries(module_programs& made) {
  name_set names;
  for (auto* list : {&made.inputs, &made.outputs, &made.kept, &made.given,
                     &made.input_gradients})
    names.insert(list->begin(), list->end());
  for (auto& g : made.gradients)
    names.insert(g.gradient);
  for (auto* list : {&made.parameters, &made.buffers})
    for (auto& name : *list)
      names.erase(name);
  names.erase("");
  made.temporaries.assign(names.begin(), names.end());
}

/// True if the op updates a parameter that has no gradient here: the outputs do
/// not depend on it.
bool lacks_gradient(const op_desc& op, const module_programs& made) {
  return role_of(op) == graph::role_optimize
         && std::ranges::any_of(op.role_vars(), [&](auto& pair) {
              return std::ranges::find(made.gradients, pair.second,
                                       &graph::parameter_gradient::gradient)
                     == made.gradients.end();
            });
}

void add_update(module_programs& made, const module_description& from) {
  auto p = from.main;
  std::erase_if(p.main().ops, [&](const op_desc& op) {
    const auto role = role_of(op);
    return (role != graph::role_optimize && role != graph::role_lr_sched)
           || lacks_gradient(op, made);
  });
  const auto has_updates = std::ranges::any_of(
    p.main().ops, [](auto& op) { return role_of(op) == graph::role_optimize; });
  if (!has_updates)
    return;
  make_persistable(p, graph::feed_names(p));
  for (auto& g : made.gradients)
    if (auto* var = p.main().find_var(g.gradient)) {
      var->persistable = true;
      var->kind = made.backward->main().var(g.gradient).kind;
    }
  made.update = shared(std::move(p));
}

void check_buffers(const module_description& from, const program& forward,
                   const module_programs& made) {
  for (auto& name : from.buffer_gradients) {
    if (std::ranges::find(made.buffers, name) == made.buffers.end())
      throw error(errc::invalid_argument,
                  "its gradient is wanted, but it is no buffer of the module",
                  {.variable = name});
    for (auto& op : forward.main().ops)
      if (std::ranges::count(op.output_names(), name) > 0)
        throw error(errc::invalid_argument,
                    "an op updates it, so it cannot have a gradient",
                    {.op_type = op.type, .variable = name});
  }
}

/// The name that a gradient of the backward pass has where the pass is
/// differentiated: "x@GRAD" is then that of a second gradient.
std::string first_name(std::string name) {
  const std::string from = "@GRAD", to = "@FIRST";
  for (auto at = name.find(from); at != name.npos;
       at = name.find(from, at + to.size()))
    name.replace(at, from.size(), to);
  return name;
}

std::vector<std::string> first_names(std::vector<std::string> names) {
  for (auto& name : names)
    name = first_name(name);
  return names;
}

/// The forward and backward ops, with the first gradients renamed.
program renamed_passes(const program& both) {
  auto p = both;
  auto& b = p.main();
  b.vars.clear();
  for (auto [name, var] : both.main().vars) {
    var.name = first_name(name);
    b.add_var(std::move(var));
  }
  for (auto& op : b.ops) {
    if (role_of(op) == graph::role_backward)
      op.attributes.erase("op_role_var");
    for (auto* slots : {&op.inputs, &op.outputs})
      for (auto& slot : *slots)
        slot.arguments = first_names(slot.arguments);
  }
  return p;
}

std::vector<std::string> without_empty(const std::vector<std::string>& names) {
  std::vector<std::string> found;
  std::ranges::copy_if(names, std::back_inserter(found),
                       [](auto& name) { return !name.empty(); });
  return found;
}

/// Puts names where `pattern` has one.
std::vector<std::string> spread(const std::vector<std::string>& names,
                                const std::vector<std::string>& pattern) {
  std::vector<std::string> found;
  auto next = names.begin();
  for (auto& name : pattern)
    found.push_back(name.empty() ? std::string{} : *next++);
  return found;
}

/// Throws unless the forward pass has kept what the program reads.
void require_kept(const std::vector<std::string>& reads,
                  const module_programs& of) {
  for (auto& name : reads)
    if (std::ranges::find(of.kept, name) == of.kept.end())
      throw error(errc::unsupported_op,
                  "a second derivative reads it, but the backward pass does "
                  "not",
                  {.variable = name});
}

} // namespace

second_programs make_second_programs(const module_programs& of) {
  const auto firsts = first_names(without_empty(of.input_gradients));
  if (firsts.empty())
    throw error(errc::invalid_argument,
                "no gradient of an input is wanted, so there is nothing to "
                "differentiate again");
  auto p = make_output_program(renamed_passes(*of.both), firsts);
  second_programs made;
  made.given = first_names(of.given);
  // The gradients of outputs, then the inputs, then the buffers.
  auto from = without_empty(made.given);
  const auto outputs = from.size();
  for (std::size_t i = 0; i < of.inputs.size(); ++i)
    if (!of.input_gradients[i].empty())
      from.push_back(of.inputs[i]);
  const auto buffers = from.size();
  for (auto& g : of.gradients)
    if (std::ranges::find(of.buffers, g.parameter) != of.buffers.end())
      from.push_back(g.parameter);
  auto schemas = of.schemas;
  schemas.merge(graph::second_derivatives());
  const auto found = graph::append_gradients(p, firsts, from, schemas);
  const auto part = [&](std::size_t first, std::size_t last) {
    return std::vector<std::string>{
      found.inputs.begin() + static_cast<long>(first),
      found.inputs.begin() + static_cast<long>(last)};
  };
  made.of_inputs = spread(found.given, of.input_gradients);
  made.output_gradients = spread(part(0, outputs), made.given);
  made.input_gradients = spread(part(outputs, buffers), of.input_gradients);
  made.gradients = found.parameters;
  add_buffers(made.gradients, from, found.inputs, buffers);
  std::erase_if(p.main().ops, [](const op_desc& op) {
    return role_of(op) == graph::role_forward;
  });
  auto results = without_empty(found.inputs);
  for (auto& g : made.gradients)
    results.push_back(g.gradient);
  p = make_output_program(p, results);
  auto given = without_empty(made.given);
  std::ranges::copy(found.given, std::back_inserter(given));
  const auto reads = read_from_before(p, 0, given);
  require_kept(reads, of);
  for (auto& names : {reads, given, results})
    make_persistable(p, names);
  made.temporaries = given;
  std::ranges::copy(results, std::back_inserter(made.temporaries));
  made.program = shared(std::move(p));
  return made;
}

module_programs make_module_programs(const module_description& from) {
  check_names(from);
  auto forward = forward_part(from);
  module_programs made;
  made.inputs = from.inputs;
  for (auto& name : from.inputs)
    made.declared_inputs.push_back(from.main.main().var(name));
  made.outputs = from.outputs;
  find_state(made, forward);
  check_buffers(from, forward, made);
  add_backward(made, from, forward);
  find_temporaries(made);
  add_update(made, from);
  make_persistable(forward, made.inputs);
  make_persistable(forward, made.outputs);
  made.evaluation = shared(graph::clone_for_test(forward));
  make_persistable(forward, made.kept);
  made.forward = shared(std::move(forward));
  return made;
}

} // namespace troupe

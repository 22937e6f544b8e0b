// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data_parallel/replica.hpp>

#include <cstring>
#include <utility>

namespace troupe {

namespace {

/// Takes the value out of a variable.
variable taken(scope& from, const std::string& name) {
  return std::exchange(from.var(name), variable{});
}

} // namespace

replica::replica(std::shared_ptr<const module_programs> programs,
                 executor_options options)
  : programs_(std::move(programs)), options_(std::move(options)) {
  options_.parameters = values_;
  options_.strategy = graph::merge_strategy::none;
  options_.scale = graph::gradient_scale::custom; // gradients are given
  options_.steps_in_flight = 1;
  // The passes may leave out values that the backward pass reads.
  options_.lowering = graph::lowering_options::none();
}

/// The executor is made here, because its variables must have values first.
void replica::run(std::optional<executor>& exe,
                  const module_programs::program_ptr& program) {
  if (!exe)
    exe.emplace(program, options_);
  exe->run({});
}

void replica::give(const std::vector<std::string>& names,
                   const std::vector<tensor>& values) {
  for (std::size_t i = 0; i < names.size(); ++i)
    values_->var(names[i]).set(values[i].share());
}

std::vector<tensor> replica::outputs() {
  std::vector<tensor> found;
  for (auto& name : programs_->outputs)
    found.push_back(values_->to_host(values_->var(name).as_tensor(), host_));
  return found;
}

/// Lets go of the values of a pass: a kernel would write later ones to the same
/// memory.
void replica::forget() {
  for (auto& name : programs_->temporaries)
    values_->var(name).clear();
}

replica_pass replica::forward(const std::vector<tensor>& inputs) {
  give(programs_->inputs, inputs);
  run(forward_, programs_->forward);
  replica_pass made{outputs(), {}};
  for (auto& name : programs_->kept)
    made.kept.push_back(values_->var(name));
  forget();
  return made;
}

std::vector<tensor> replica::evaluate(const std::vector<tensor>& inputs) {
  give(programs_->inputs, inputs);
  run(evaluation_, programs_->evaluation);
  auto found = outputs();
  forget();
  return found;
}

tensor replica::zeros_like(const tensor& value) {
  auto made = tensor::make(host_, value.dims(), value.type());
  std::memset(made.raw(), 0, made.bytes());
  auto& on = *options_.hooks.device_instances.front();
  return on.reaches(made) ? made : on.to_device(made);
}

/// Gives the variables that have names their gradients, or zeros.
void replica::give_gradients(const std::vector<std::string>& names,
                             const std::vector<tensor>& values,
                             const std::vector<tensor>& like) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!names[i].empty())
      values_->var(names[i]).set(values[i] ? values[i].share()
                                           : zeros_like(like[i]));
}

void replica::restore(const replica_pass& of) {
  for (std::size_t i = 0; i < of.kept.size(); ++i)
    values_->var(programs_->kept[i]) = of.kept[i];
}

/// In host memory; none without a name.
std::vector<tensor> replica::found(const std::vector<std::string>& names) {
  std::vector<tensor> made;
  for (auto& name : names)
    made.push_back(name.empty()
                     ? tensor{}
                     : values_->to_host(values_->var(name).as_tensor(), host_));
  return made;
}

replica_gradients
replica::backward(const replica_pass& of,
                  const std::vector<tensor>& output_gradients) {
  restore(of);
  give_gradients(programs_->given, output_gradients, of.outputs);
  run(backward_, programs_->backward);
  replica_gradients made{found(programs_->input_gradients), {}};
  for (auto& g : programs_->gradients)
    made.parameters.push_back(taken(*values_, g.gradient));
  forget();
  return made;
}

replica_second_gradients
replica::second(const std::shared_ptr<const second_programs>& programs,
                const replica_pass& of, const std::vector<tensor>& inputs,
                const std::vector<tensor>& output_gradients,
                const std::vector<tensor>& again) {
  restore(of);
  give_gradients(programs->given, output_gradients, of.outputs);
  give_gradients(programs->of_inputs, again, inputs);
  run(second_, programs->program);
  replica_second_gradients made{
    found(programs->output_gradients), found(programs->input_gradients), {}};
  for (auto& g : programs->gradients)
    made.parameters.push_back(taken(*values_, g.gradient));
  forget();
  for (auto& name : programs->temporaries)
    values_->var(name).clear();
  return made;
}

} // namespace troupe

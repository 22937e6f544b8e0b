// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data_parallel/data_parallel.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/caf/inside.hpp>
#include <troupe/actors/own_system.hpp>
#include <troupe/actors/steps/scatter.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/one_at_a_time.hpp>
#include <troupe/training/data_parallel/parallel_apply.hpp>
#include <troupe/training/data_parallel/replica.hpp>

#include <algorithm>
#include <utility>

namespace troupe {

using parallel::differentiable;

namespace {

using tensors = std::vector<tensor>;

tensor as_tensor(double number, const graph::var_desc& declared) {
  arena host{make_host_memory_source()}; // its blocks outlive it
  auto value = tensor::make(host, {1}, dtype::float64);
  value.values<double>()[0] = number;
  auto made = cast(value, declared.type, host);
  return declared.dims.rank() == 0 ? made.reshaped({}) : made;
}

void check_count(std::size_t given, std::size_t wanted,
                 const std::string& what) {
  if (given != wanted)
    throw error(errc::invalid_argument, std::to_string(given) + " " + what
                                          + ", expected "
                                          + std::to_string(wanted));
}

differentiable no_third_derivative(const tensors&) {
  throw error(errc::unsupported_op,
              "second gradients of a module cannot be differentiated again: "
              "there are no third derivatives");
}

/// A gradient has the dtype and shape of its value.
/// @param what "the output" or "the input"
void check_gradient(const tensor& gradient, const tensor& value,
                    const std::string& what, const std::string& name) {
  if (gradient.type() != value.type())
    throw error(errc::dtype_mismatch,
                "the gradient is " + std::string{to_string(gradient.type())}
                  + ", " + what + " " + std::string{to_string(value.type())},
                {.variable = name});
  if (!(gradient.dims() == value.dims()))
    throw error(errc::shape_mismatch,
                "the gradient has shape " + to_string(gradient.dims()) + ", "
                  + what + " " + to_string(value.dims()),
                {.variable = name});
}

/// What the arguments of a pass have become.
struct scattered_arguments {
  std::vector<tensors> by_replica; // a tensor per input
  // Per input: how it was cut, or copied to each replica.
  std::vector<differentiable> ways;
  std::size_t replicas() const { return by_replica.size(); }
};

/// A forward pass, for its backward passes.
struct whole_pass {
  scattered_arguments args;
  std::vector<replica_pass> passes;
  std::vector<differentiable> gathered; // by output
};

/// A backward pass, for its gradient.
struct whole_backward {
  std::vector<tensors> chunks;        // by replica: what it was given
  std::vector<differentiable> cuts;   // by output: how that was cut
  std::vector<differentiable> joined; // by input: how the results were joined
};

/// Joins values of inputs over the replicas, as the inputs were cut.
std::vector<differentiable>
joined_as_inputs(const scattered_arguments& args,
                 const std::vector<tensors>& by_replica) {
  std::vector<differentiable> joined;
  for (std::size_t i = 0; i < args.ways.size(); ++i) {
    tensors chunks;
    for (auto& of_replica : by_replica)
      chunks.push_back(of_replica[i]);
    joined.push_back(args.ways[i].backward(chunks));
  }
  return joined;
}

} // namespace

struct data_parallel::impl : std::enable_shared_from_this<impl> {
  impl(std::shared_ptr<graph_module> what, parallel::devices on,
       std::optional<device_id> output, data_parallel_options opts);

  scattered_arguments scatter(arguments args) const;
  void replicate(std::size_t n);
  void keep_buffers();
  template <class Result, class Run>
  std::vector<Result> on_replicas(std::size_t n, Run run);
  differentiable forward(arguments args);
  tensors evaluate(arguments args);
  std::vector<differentiable> gather(const std::vector<tensors>& by_replica);
  void scatter_gradients(const tensors& given, const whole_pass& of,
                         whole_backward& made) const;
  differentiable backward(const std::shared_ptr<const whole_pass>& of,
                          const tensors& given);
  std::vector<tensors> scatter_second(const tensors& given,
                                      const whole_backward& first) const;
  tensors second_backward(const whole_pass& of, const whole_backward& first,
                          const tensors& given);
  void add_gradients(const std::vector<graph::parameter_gradient>& gradients,
                     std::vector<std::vector<variable>> by_replica);
  void complete_gradients();
  void update();

  one_at_a_time::call enter() { return {use, "the model"}; }
  const module_programs& programs() const { return *what->programs(); }
  executor_options options_of(std::size_t device) const;

  std::shared_ptr<graph_module> what;
  data_parallel_options options;
  parallel::devices on;
  std::unique_ptr<actors::own_system> own;
  caf::actor_system* system;
  std::optional<std::size_t> output;
  std::vector<std::unique_ptr<replica>> replicas;
  std::optional<executor> updates;
  /// Made when they are first needed.
  std::shared_ptr<const second_programs> second;
  std::size_t last_replicas = 0;
  one_at_a_time use;
};

data_parallel::impl::impl(std::shared_ptr<graph_module> m,
                          parallel::devices group, std::optional<device_id> out,
                          data_parallel_options opts)
  : what(std::move(m)), options(std::move(opts)), on(std::move(group)) {
  if (!what || !on)
    throw error(errc::invalid_argument, "no module, or no devices");
  if (out)
    output = on->index_of(*out);
  if (!options.kernels)
    options.kernels = std::make_shared<kernel_table>(kernels_for(on->ids()));
  system = options.system;
  if (!system) {
    own = std::make_unique<actors::own_system>(options.threads, false);
    system = own->system.get();
    // Otherwise it could not end before this thread: see parallel_apply.cpp.
    actors::forget_system();
  }
  for (std::size_t i = 0; i < on->size(); ++i) {
    replicas.push_back(
      std::make_unique<replica>(what->programs(), options_of(i)));
    // A collective call may give all devices a value in the memory of one.
    for (std::size_t d = 0; d < on->size(); ++d)
      replicas[i]->values().add_device(on->at(d));
  }
}

executor_options data_parallel::impl::options_of(std::size_t device) const {
  executor_options made;
  made.devices = {on->ids()[device]};
  made.hooks.device_instances = {on->at(device)};
  made.seed = options.seed + device;
  made.kernels = options.kernels;
  made.system = system;
  return made;
}

/// Steps 1 and 2: checks the arguments, and cuts them over the devices or
/// copies them to each.
scattered_arguments data_parallel::impl::scatter(arguments args) const {
  auto& p = programs();
  check_count(args.size(), p.inputs.size(), "arguments of the module");
  tensors to_cut;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i].number)
      args[i] = {as_tensor(*args[i].number, p.declared_inputs[i]), true, {}};
    actors::check_feed(p.inputs[i], args[i].value, p.declared_inputs[i]);
    if (args[i].is_whole)
      continue;
    to_cut.push_back(args[i].value);
    names.push_back(p.inputs[i]);
  }
  auto cut = parallel::scatter_together(on, to_cut, options.axis, names);
  const auto n = cut.empty() ? 1 : cut.front().outputs.size();
  scattered_arguments made{std::vector<tensors>(n), {}};
  auto next = cut.begin();
  for (auto& arg : args) {
    made.ways.push_back(arg.is_whole ? parallel::broadcast(on, {arg.value}, n)
                                     : std::move(*next++));
    for (std::size_t r = 0; r < n; ++r)
      made.by_replica[r].push_back(made.ways.back().outputs[r]);
  }
  return made;
}

/// Step 3: one collective call copies all parameters and buffers. The values
/// of the module are marked as shared, so that who updates them takes other
/// memory: a replica that waits for its backward pass keeps its values.
void data_parallel::impl::replicate(std::size_t n) {
  auto& from = what->values();
  from.add_device(on->at(0));
  std::vector<variable*> values;
  std::vector<std::vector<variable*>> copies(n);
  for (auto* names : {&programs().parameters, &programs().buffers})
    for (auto& name : *names) {
      auto* value = from.find(name);
      if (!value || !value->is_tensor())
        throw error(errc::not_found,
                    "it has no value: run the startup program or load "
                    "parameters first",
                    {.variable = name});
      from.bring_to(name, *on->at(0));
      value->as_tensor().share();
      values.push_back(value);
      for (std::size_t r = 0; r < n; ++r)
        copies[r].push_back(&replicas[r]->values().var(name));
    }
  if (values.empty())
    return;
  on->broadcast(values, copies);
  for (auto* names : {&programs().parameters, &programs().buffers})
    for (auto& name : *names)
      for (std::size_t r = 0; r < n; ++r)
        replicas[r]->values().bring_to(name, *on->at(r));
}

void data_parallel::impl::keep_buffers() {
  for (auto& name : programs().buffers)
    what->values().var(name) = replicas[0]->values().var(name);
}

/// Step 4: an actor per replica.
template <class Result, class Run>
std::vector<Result> data_parallel::impl::on_replicas(std::size_t n, Run run) {
  std::vector<std::size_t> numbers(n);
  for (std::size_t r = 0; r < n; ++r)
    numbers[r] = r;
  const std::vector<Run> same(n, run);
  return parallel::parallel_apply(*system, same, numbers,
                                  std::span{on->ids()}.first(n));
}

/// Step 5.
std::vector<differentiable>
data_parallel::impl::gather(const std::vector<tensors>& by_replica) {
  std::vector<differentiable> gathered;
  for (std::size_t i = 0; i < programs().outputs.size(); ++i) {
    tensors chunks;
    for (auto& of_replica : by_replica)
      chunks.push_back(of_replica[i]);
    try {
      gathered.push_back(parallel::gather(on, chunks, options.axis, output));
    } catch (const error& e) {
      throw e.with_context({.variable = programs().outputs[i]});
    }
  }
  return gathered;
}

differentiable data_parallel::impl::forward(arguments args) {
  auto scattered = scatter(std::move(args));
  const auto n = scattered.replicas();
  replicate(n);
  auto passes = on_replicas<replica_pass>(n, [&](std::size_t r) {
    return replicas[r]->forward(scattered.by_replica[r]);
  });
  std::vector<tensors> by_replica;
  for (auto& pass : passes)
    by_replica.push_back(pass.outputs);
  auto gathered = gather(by_replica);
  keep_buffers();
  last_replicas = n;
  differentiable result;
  for (auto& g : gathered)
    result.outputs.push_back(g.outputs.front());
  if (!programs().backward)
    return result;
  auto pass = std::make_shared<const whole_pass>(
    whole_pass{std::move(scattered), std::move(passes), std::move(gathered)});
  result.backward = [self = shared_from_this(),
                     pass = std::move(pass)](const tensors& given) {
    const auto here = self->enter();
    return self->backward(pass, given);
  };
  return result;
}

tensors data_parallel::impl::evaluate(arguments args) {
  const auto scattered = scatter(std::move(args));
  replicate(scattered.replicas());
  auto made =
    gather(on_replicas<tensors>(scattered.replicas(), [&](std::size_t r) {
      return replicas[r]->evaluate(scattered.by_replica[r]);
    }));
  last_replicas = scattered.replicas();
  tensors outputs;
  for (auto& g : made)
    outputs.push_back(g.outputs.front());
  return outputs;
}

void data_parallel::impl::scatter_gradients(const tensors& given,
                                            const whole_pass& of,
                                            whole_backward& made) const {
  auto& p = programs();
  check_count(given.size(), p.outputs.size(), "gradients of outputs");
  made.chunks.resize(of.passes.size());
  bool has_one = false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] && p.given[i].empty())
      throw error(errc::invalid_argument,
                  "a gradient of an output that depends on nothing that has "
                  "one",
                  {.variable = p.outputs[i]});
    if (given[i])
      check_gradient(given[i], of.gathered[i].outputs.front(), "the output",
                     p.outputs[i]);
    has_one = has_one || given[i];
    made.cuts.push_back(of.gathered[i].backward({given[i]}));
    for (std::size_t r = 0; r < made.chunks.size(); ++r)
      made.chunks[r].push_back(made.cuts.back().outputs[r]);
  }
  if (!has_one)
    throw error(errc::invalid_argument, "no output has a gradient");
}

differentiable
data_parallel::impl::backward(const std::shared_ptr<const whole_pass>& of,
                              const tensors& given) {
  whole_backward first;
  scatter_gradients(given, *of, first);
  auto made =
    on_replicas<replica_gradients>(of->passes.size(), [&](std::size_t r) {
      return replicas[r]->backward(of->passes[r], first.chunks[r]);
    });
  std::vector<tensors> inputs;
  std::vector<std::vector<variable>> parameters;
  for (auto& m : made) {
    inputs.push_back(std::move(m.inputs));
    parameters.push_back(std::move(m.parameters));
  }
  first.joined = joined_as_inputs(of->args, inputs);
  add_gradients(programs().gradients, std::move(parameters));
  differentiable result;
  for (auto& j : first.joined)
    result.outputs.push_back(j.outputs.front());
  result.backward = [self = shared_from_this(), of,
                     first = std::move(first)](const tensors& again) {
    const auto here = self->enter();
    return differentiable{self->second_backward(*of, first, again),
                          no_third_derivative};
  };
  return result;
}

/// By replica: the gradient of each input's gradient, or none.
std::vector<tensors>
data_parallel::impl::scatter_second(const tensors& given,
                                    const whole_backward& first) const {
  auto& p = programs();
  check_count(given.size(), p.inputs.size(), "gradients of inputs' gradients");
  std::vector<tensors> by_replica(first.chunks.size(), tensors(given.size()));
  bool has_one = false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!given[i])
      continue;
    const auto& gradient = first.joined[i].outputs.front();
    if (!gradient)
      throw error(errc::invalid_argument,
                  "the input has no gradient to differentiate",
                  {.variable = p.inputs[i]});
    check_gradient(given[i], gradient, "the input", p.inputs[i]);
    has_one = true;
    const auto chunks = first.joined[i].backward({given[i]}).outputs;
    for (std::size_t r = 0; r < by_replica.size(); ++r)
      by_replica[r][i] = chunks[r];
  }
  if (!has_one)
    throw error(errc::invalid_argument, "no input's gradient has a gradient");
  return by_replica;
}

/// The gradients of what the backward pass was given, then of the inputs.
tensors data_parallel::impl::second_backward(const whole_pass& of,
                                             const whole_backward& first,
                                             const tensors& given) {
  if (!second)
    second =
      std::make_shared<const second_programs>(make_second_programs(programs()));
  const auto again = scatter_second(given, first);
  auto made =
    on_replicas<replica_second_gradients>(of.passes.size(), [&](std::size_t r) {
      return replicas[r]->second(second, of.passes[r], of.args.by_replica[r],
                                 first.chunks[r], again[r]);
    });
  std::vector<tensors> inputs;
  std::vector<std::vector<variable>> parameters;
  for (auto& m : made) {
    inputs.push_back(std::move(m.inputs));
    parameters.push_back(std::move(m.parameters));
  }
  tensors found;
  for (std::size_t i = 0; i < first.cuts.size(); ++i) {
    tensors chunks;
    for (auto& m : made)
      chunks.push_back(m.outputs[i]);
    const bool is_none =
      std::ranges::none_of(chunks, [](auto& c) { return bool(c); });
    found.push_back(is_none ? tensor{}
                            : first.cuts[i].backward(chunks).outputs.front());
  }
  for (auto& j : joined_as_inputs(of.args, inputs))
    found.push_back(j.outputs.front());
  add_gradients(second->gradients, std::move(parameters));
  complete_gradients();
  return found;
}

/// Adds the replicas' gradients of parameters to those of the module. The sum
/// of the replicas comes first: it is the gradient of this pass.
void data_parallel::impl::add_gradients(
  const std::vector<graph::parameter_gradient>& gradients,
  std::vector<std::vector<variable>> by_replica) {
  if (gradients.empty())
    return;
  auto sums = on->reduce_add(by_replica, 0);
  for (std::size_t i = 0; i < sums.size(); ++i)
    on->add_to(what->values().var(gradients[i].gradient), std::move(sums[i]));
}

/// A gradient of zero for what has none: a penalty of gradients does not depend
/// on each parameter, but all are updated.
void data_parallel::impl::complete_gradients() {
  for (auto& g : programs().gradients)
    if (!what->gradient(g.parameter))
      what->values()
        .var(g.gradient)
        .set(
          replicas[0]->zeros_like(what->values().var(g.parameter).as_tensor()));
}

void data_parallel::impl::update() {
  auto& p = programs();
  if (!p.update)
    throw error(errc::invalid_argument,
                "the network of the module has no optimizer");
  for (auto& g : p.gradients)
    if (!what->gradient(g.parameter))
      throw error(errc::not_found, "the parameter has no gradient",
                  {.variable = g.parameter});
  if (!updates) {
    auto opts = options_of(0);
    opts.parameters = what->shared_values();
    updates.emplace(p.update, std::move(opts));
  }
  updates->run({});
}

data_parallel::data_parallel(std::shared_ptr<graph_module> what,
                             const std::vector<device_id>& devices,
                             std::optional<device_id> output,
                             data_parallel_options options)
  : data_parallel(std::move(what), std::make_shared<device_group>(devices),
                  output, std::move(options)) {}

data_parallel::data_parallel(std::shared_ptr<graph_module> what,
                             parallel::devices on,
                             std::optional<device_id> output,
                             data_parallel_options options)
  : impl_(std::make_shared<impl>(std::move(what), std::move(on), output,
                                 std::move(options))) {}

data_parallel::~data_parallel() = default;

void data_parallel::update() {
  const auto here = impl_->enter();
  impl_->update();
}

const std::shared_ptr<graph_module>& data_parallel::of() const noexcept {
  return impl_->what;
}

std::size_t data_parallel::replicas() const noexcept {
  return impl_->last_replicas;
}

data_parallel::arguments data_parallel::by_name(const feed_map& named) const {
  arguments found;
  auto& inputs = impl_->programs().inputs;
  for (auto& name : inputs) {
    const auto value = named.find(name);
    if (value == named.end())
      throw error(errc::not_found, "nothing was given for an input",
                  {.variable = name});
    found.push_back({value->second, false, {}});
  }
  for (auto& [name, value] : named)
    if (std::ranges::find(inputs, name) == inputs.end())
      throw error(errc::not_found, "the module has no input of that name",
                  {.variable = name});
  return found;
}

differentiable data_parallel::run_forward(arguments args) {
  const auto here = impl_->enter();
  return impl_->forward(std::move(args));
}

std::vector<tensor> data_parallel::run_evaluation(arguments args) {
  const auto here = impl_->enter();
  return impl_->evaluate(std::move(args));
}

} // namespace troupe

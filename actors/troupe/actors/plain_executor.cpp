// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/plain_executor.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/steps/scatter.hpp>
#include <troupe/actors/tasks/control_flow.hpp>
#include <troupe/actors/tasks/output_check.hpp>
#include <troupe/graph/argument.hpp>
#include <troupe/graph/sub_blocks.hpp>
#include <troupe/graph/unsupported_ops.hpp>
#include <troupe/kernels/lod_sharing.hpp>

#include <algorithm>
#include <map>
#include <new>

namespace troupe {

namespace {

/// One device: its variables and the kernels of all ops.
struct replica {
  std::shared_ptr<device> on;
  std::unique_ptr<stream> queue;
  scope* persistable = nullptr;
  std::map<std::string, variable> temporaries;
  std::vector<std::unique_ptr<kernel>> kernels;
};

bool makes_loss_gradient(const graph::op_desc& op) {
  return op.role() == (graph::role_backward | graph::role_loss);
}

bool per_sample(const graph::op_desc& op) {
  const auto base = op.role() & ~graph::role_loss;
  return base == graph::role_forward || base == graph::role_backward;
}

/// Sets a loss gradient to the device's fraction of the samples.
void weigh_loss(variable& gradient, const step_info& shard, device& on) {
  auto& value = gradient.as_tensor();
  auto weight = tensor::make(on.memory(), value.dims(), dtype::float64);
  std::ranges::fill(weight.values<double>(),
                    static_cast<double>(shard.shard_samples)
                      / static_cast<double>(shard.batch_samples));
  gradient.set(cast(weight, value.type(), on.memory()));
}

void require_float32(const tensor& value, const std::string& gradient) {
  if (value.type() != dtype::float32)
    throw error(errc::dtype_mismatch,
                "a gradient to merge is " + std::string{to_string(value.type())}
                  + ", expected float32",
                {.variable = gradient});
}

/// a[i] += b[i] for dense values of equal shape.
void add(tensor& a, const tensor& b) {
  auto to = a.values<float>();
  auto from = b.values<float>();
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i] += from[i];
}

tensor sum_dense(const std::vector<const tensor*>& parts, arena& memory) {
  auto sum = clone(*parts.front(), memory);
  for (std::size_t i = 1; i < parts.size(); ++i)
    add(sum, *parts[i]);
  return sum;
}

/// Sums rows over parts in device order. Each row occurs once, in ascending
/// order.
selected_rows sum_rows(const std::vector<const selected_rows*>& parts,
                       arena& memory) {
  std::map<std::int64_t, std::vector<float>> sums;
  auto dims = parts.front()->values.dims();
  const auto width = static_cast<std::size_t>(dims.numel(1, dims.rank()));
  for (auto* p : parts) {
    auto values = p->values.values<float>();
    for (std::size_t r = 0; r < p->rows.size(); ++r) {
      auto& row = sums[p->rows[r]];
      row.resize(width);
      for (std::size_t i = 0; i < width; ++i)
        row[i] += values[r * width + i];
    }
  }
  dims[0] = static_cast<std::int64_t>(sums.size());
  selected_rows merged;
  merged.height = parts.front()->height;
  merged.values = tensor::make(memory, dims, dtype::float32);
  auto* out = merged.values.data<float>();
  for (auto& [row, value] : sums) {
    merged.rows.push_back(row);
    out = std::copy(value.begin(), value.end(), out);
  }
  return merged;
}

} // namespace

struct plain_executor::impl {
  impl(const graph::program& main, plain_executor_options opts);

  variable& find(replica& r, const std::string& name);
  std::vector<variable*> bind(replica& r, const std::vector<op_slot>& slots);
  void spread_parameters();
  void feed(const feed_map& feeds);
  void run_op(std::size_t op, std::size_t device);
  bool nothing_to_do(const graph::op_desc& op, std::size_t device);
  void merge(const std::string& gradient);
  step_result collect(std::span<const std::string> fetches);

  plain_executor_options options;
  graph::program program;
  std::string loss;
  actors::needed_feeds feeds_needed;
  std::shared_ptr<scope> parameters;
  std::vector<replica> replicas;
  std::vector<step_info> shards;
  step_id next_step = 0;
};

plain_executor::impl::impl(const graph::program& main,
                           plain_executor_options opts)
  : options(std::move(opts)), program(graph::expose_sub_blocks(main)),
    parameters(options.parameters ? options.parameters
                                  : std::make_shared<scope>()) {
  if (!options.kernels)
    options.kernels =
      std::make_shared<kernel_table>(kernels_for(options.devices));
  graph::require_kernels(program, *options.kernels, options.devices);
  if (options.parameter_names.empty())
    for (auto& [name, desc] : program.main().vars)
      if (desc.is_parameter)
        options.parameter_names.push_back(name);
  try {
    loss = options.loss.empty() ? graph::find_loss(program) : options.loss;
  } catch (const error& e) {
    if (e.code() != errc::not_found)
      throw;
  }
  if (!loss.empty() && !program.main().find_var(loss))
    throw error(errc::not_found, "no such variable", {.variable = loss});
  feeds_needed = {graph::feed_names(program), program.main()};
  if (options.devices.size() > 1)
    graph::check_gradients_in_main(program);
  actors::output_check outputs{program};
  for (auto& on : make_devices(options.devices)) {
    replica r;
    r.persistable = &parameters->replica(replicas.size());
    r.queue = on->make_stream({"plain", 1});
    for (auto& op : program.main().ops)
      r.kernels.push_back(outputs.of(
        actors::make_op_kernel(program, op, *options.kernels, on->id().kind),
        op));
    r.on = std::move(on);
    r.persistable->add_device(r.on);
    replicas.push_back(std::move(r));
  }
}

variable& plain_executor::impl::find(replica& r, const std::string& name) {
  const auto* desc = program.main().find_var(name);
  return desc && desc->persistable ? r.persistable->var(name)
                                   : r.temporaries[name];
}

void plain_executor::impl::spread_parameters() {
  arena host{make_host_memory_source()}; // its blocks outlive it
  for (auto& [name, desc] : program.main().vars) {
    const auto* first = desc.persistable ? parameters->find(name) : nullptr;
    if (!first || !first->is_tensor())
      continue;
    for (auto& r : replicas) {
      if (auto& here = find(r, name); !here.has_value())
        here.set(
          r.on->to_device(parameters->to_host(first->as_tensor(), host)));
      r.persistable->bring_to(name, *r.on);
    }
  }
}

std::vector<variable*>
plain_executor::impl::bind(replica& r, const std::vector<op_slot>& slots) {
  std::vector<variable*> bound;
  for (auto& s : slots)
    for (auto& name : s.arguments)
      bound.push_back(graph::names_variable(name) ? &find(r, name) : nullptr);
  return bound;
}

void plain_executor::impl::feed(const feed_map& feeds) {
  for (std::size_t d = 0; d < replicas.size(); ++d) {
    auto& r = replicas[d];
    for (auto& [name, value] : r.temporaries)
      value.clear();
    for (auto& [name, value] : feeds)
      if (actors::feeds_persistable(program.main(), name))
        r.persistable->var(name).set(r.on->to_device(value));
      else if (shards[d].shard_samples > 0)
        r.temporaries[name].set(r.on->to_device(
          feeds_needed.is_whole(name)
            ? value
            : value.samples(shards[d].first_sample, shards[d].shard_samples)));
  }
}

bool plain_executor::impl::nothing_to_do(const graph::op_desc& op,
                                         std::size_t device) {
  if (shards[device].shard_samples > 0)
    return false;
  if (per_sample(op))
    return true;
  const auto absent = [&](const std::string& name) {
    return graph::names_variable(name)
           && !find(replicas[device], name).has_value();
  };
  return !actors::takes_absent_inputs(op.type)
         && std::ranges::any_of(op.input_names(), absent);
}

void plain_executor::impl::run_op(std::size_t number, std::size_t device) {
  const auto& op = program.main().ops[number];
  if (nothing_to_do(op, device))
    return;
  auto& r = replicas[device];
  const auto inputs = bind(r, op.inputs);
  const auto outputs = bind(r, op.outputs);
  kernel_context ctx{*r.on,
                     r.queue.get(),
                     op.attributes,
                     {op.inputs, inputs.data()},
                     {op.outputs, outputs.data()},
                     shards[device]};
  const auto where = [&]() -> error_context {
    return {.op = op.type + "#" + std::to_string(number),
            .op_type = op.type,
            .device = to_string(r.on->id()),
            .step = shards[device].step,
            .call_stack = op.call_stack()};
  };
  try {
    run_kernel(*r.kernels[number], lod_rule_of(op.type), ctx);
  } catch (const error& e) {
    throw e.with_context(where());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    throw error(errc::kernel_failure, e.what(), where());
  }
  if (makes_loss_gradient(op) && replicas.size() > 1)
    weigh_loss(*outputs.front(), shards[device], *r.on);
}

void plain_executor::impl::merge(const std::string& gradient) {
  std::vector<const tensor*> dense;
  std::vector<const selected_rows*> sparse;
  for (auto& r : replicas) {
    auto& value = find(r, gradient);
    if (value.is_tensor())
      dense.push_back(&value.as_tensor());
    else if (value.is_rows())
      sparse.push_back(&value.as_rows());
    else
      continue;
    require_float32(
      value.is_rows() ? value.as_rows().values : value.as_tensor(), gradient);
  }
  auto& memory = replicas.front().on->memory();
  if (!sparse.empty()) {
    const auto merged = sum_rows(sparse, memory);
    for (auto& r : replicas) {
      auto copy = merged;
      copy.values = r.on->to_device(merged.values);
      find(r, gradient).set(std::move(copy));
    }
  } else if (!dense.empty()) {
    const auto merged = sum_dense(dense, memory);
    for (auto& r : replicas)
      find(r, gradient).set(r.on->to_device(merged));
  }
}

step_result
plain_executor::impl::collect(std::span<const std::string> fetches) {
  std::vector<std::string> wanted{fetches.begin(), fetches.end()};
  auto names = wanted;
  if (!loss.empty())
    names.push_back(loss);
  std::vector<actors::fetched_value> values;
  arena host{make_host_memory_source()}; // its blocks outlive it
  for (auto& name : names) {
    for (std::size_t d = 0; d < replicas.size(); ++d)
      if (auto& value = find(replicas[d], name); value.is_tensor())
        values.push_back(
          {name, d, replicas[d].on->to_host(value.as_tensor(), host)});
  }
  return actors::gather({shards.front().step, actors::samples_of(shards)}, loss,
                        values, wanted);
}

plain_executor::plain_executor(const graph::program& main,
                               plain_executor_options options)
  : impl_(std::make_unique<impl>(main, std::move(options))) {}

plain_executor::~plain_executor() = default;

step_result plain_executor::run(const feed_map& feeds,
                                std::span<const std::string> fetches) {
  auto& self = *impl_;
  for (auto& name : fetches)
    if (!self.program.main().find_var(name))
      throw error(errc::not_found, "no such variable", {.variable = name});
  const auto samples = actors::check_feeds(
    feeds, self.feeds_needed, self.program.main(), self.replicas.size());
  self.shards = actors::split_batch(samples, self.replicas.size(),
                                    self.next_step++, self.options.seed);
  for (auto& shard : self.shards)
    shard.stop = self.options.stop;
  self.spread_parameters();
  self.feed(feeds);
  const auto& ops = self.program.main().ops;
  const auto& merged = self.options.parameter_names;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    for (std::size_t d = 0; d < self.replicas.size(); ++d) {
      if (self.shards[d].stopped())
        throw error(errc::cancelled, "stopped on request");
      if (self.options.before_op)
        self.options.before_op(ops[i], i, d);
      self.run_op(i, d);
      if (self.options.after_op)
        self.options.after_op(ops[i], i, d);
    }
    if (self.replicas.size() == 1 || !(ops[i].role() & graph::role_backward))
      continue;
    for (auto& [parameter, gradient] : ops[i].role_vars())
      if (std::find(merged.begin(), merged.end(), parameter) != merged.end())
        self.merge(gradient);
  }
  return self.collect(fetches);
}

scope& plain_executor::parameters() noexcept {
  return *impl_->parameters;
}

void run_startup(const graph::program& startup, scope& parameters,
                 std::uint64_t seed, const kernel_table* kernels) {
  plain_executor_options options;
  options.seed = seed;
  // Shared pointers that own nothing: both objects outlive the executor below.
  options.parameters = {std::shared_ptr<scope>{}, &parameters};
  if (kernels)
    options.kernels = {std::shared_ptr<const kernel_table>{}, kernels};
  plain_executor{startup, std::move(options)}.run({});
}

} // namespace troupe

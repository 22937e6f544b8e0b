// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/ssa_builder.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/argument.hpp>
#include <troupe/graph/merging/gathered_product.hpp>
#include <troupe/graph/merging/merge_plan.hpp>
#include <troupe/graph/merging/merging_update.hpp>
#include <troupe/graph/passes/accumulate_gradients.hpp>
#include <troupe/graph/passes/fuse_batch_norm.hpp>
#include <troupe/graph/passes/recompute_activations.hpp>
#include <troupe/graph/passes/shape_inputs.hpp>
#include <troupe/graph/passes/sync_batch_norm.hpp>
#include <troupe/graph/passes/update_counters.hpp>
#include <troupe/graph/passes/write_in_place.hpp>
#include <troupe/graph/ssa/batch_users.hpp>
#include <troupe/graph/ssa/handle_maker.hpp>
#include <troupe/graph/ssa/ssa_edges.hpp>
#include <troupe/graph/sub_blocks.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace troupe::graph {

namespace {

template <class Enum, std::size_t N>
Enum parse_name(std::string_view what, std::string_view name,
                const std::array<std::pair<std::string_view, Enum>, N>& table) {
  std::string accepted;
  for (auto& [key, value] : table) {
    if (key == name)
      return value;
    accepted += accepted.empty() ? "" : ", ";
    accepted += key;
  }
  throw error{errc::invalid_argument, "unknown " + std::string{what} + " \""
                                        + std::string{name}
                                        + "\", accepted: " + accepted};
}

bool is_loss_gradient(const op_desc& op) {
  constexpr auto both = role_backward | role_loss;
  return (op.role() & both) == both;
}

// Inference programs pass values in and out by these ops; here the executor
// does it.
bool is_feed_or_fetch(const op_desc& op) {
  return op.type == "feed" || op.type == "fetch";
}

/// A variable on a device.
struct placed_var {
  name_id name;
  std::size_t device;
};

/// Walks the program once and adds its handles.
class graph_builder {
public:
  graph_builder(std::shared_ptr<const program> p, const build_options& options)
    : block_(p->main()), options_(options), plan_(plan_merges(block_, options)),
      handles_(std::move(p), options.devices) {
    for (auto& g : plan_.gradients) {
      if (g.home)
        broadcasts_.emplace(g.broadcast_after, &g);
      if (g.merged_by)
        merging_updates_.emplace(*g.merged_by, &g);
    }
    if (options.lowering.share_parameters)
      for (auto name : find_sharable(block_, plan_))
        handles_.share(handles_.id_of(name));
  }

  ssa_graph build();

private:
  void add_program_op(std::size_t position);
  void add_computation(std::size_t device);
  void add_computations();
  void add_computation_across(op_desc desc, std::size_t device);
  void add_rest_of_gathered(const op_desc& op);
  void add_merging_update(const op_desc& op, const merged_gradient& g);
  void add_loss_scale(const op_desc& op);
  void add_all_reduce(const op_desc& op);
  void add_fetch(const std::string& name);
  void add_fetches();

  op_handle& add_collective(op_kind kind, std::size_t root,
                            const std::vector<placed_var>& inputs,
                            const std::vector<placed_var>& outputs);
  void merge(op_kind kind, std::size_t root,
             const std::vector<placed_var>& inputs,
             const std::vector<placed_var>& outputs);
  void gather_losses(std::size_t position);
  std::optional<std::size_t> last_writer_of_loss() const;
  void merge_gradients(std::size_t position);
  void all_reduce(const merged_gradient& g);
  void reduce(const merged_gradient& g);
  void gather(const merged_gradient& g);
  void broadcast_parameters(std::size_t position);
  std::optional<std::size_t> fusible_bytes(const merged_gradient& g) const;
  bool touches_pending() const;
  void flush_pending();
  std::vector<placed_var> on_all_devices(name_id name) const;
  std::vector<std::string> names_of(const std::vector<placed_var>& vars) const;
  void list_ids(const std::vector<op_slot>& slots, std::vector<name_id>& ids);

  const block& block_;
  const build_options& options_;
  const merge_plan plan_;
  handle_maker handles_;
  std::multimap<std::size_t, const merged_gradient*> broadcasts_;
  std::map<std::size_t, const merged_gradient*> merging_updates_;
  std::int32_t num_collectives_ = 0;
  // the op after which the loss is gathered; nothing if it is not
  std::optional<std::size_t> loss_is_complete_after_;
  std::size_t next_gradient_ = 0;
  // Gradients that will be merged by the next all-reduce, and their type.
  std::vector<name_id> pending_;
  std::vector<bool> is_pending_; // by name
  std::size_t pending_bytes_ = 0;
  dtype pending_type_ = dtype::float32;
  // Variables of the op that is being added.
  std::vector<name_id> inputs_;
  std::vector<name_id> outputs_;
};

// ---------------------------------------------------------------- ops

void graph_builder::list_ids(const std::vector<op_slot>& slots,
                             std::vector<name_id>& ids) {
  ids.clear();
  for (auto& slot : slots)
    for (auto& name : slot.arguments)
      if (names_variable(name))
        ids.push_back(handles_.id_of(name));
}

void graph_builder::add_computation(std::size_t device) {
  handles_.add_op(op_kind::computation, device);
  for (auto name : inputs_)
    handles_.read(name, device);
  for (auto name : outputs_)
    handles_.write(name, device);
}

void graph_builder::add_computations() {
  for (std::size_t device = 0; device < handles_.num_devices(); ++device)
    add_computation(device);
}

// Adds an op that can use variables of all devices. A slot with an argument per
// device uses the variables of the devices in order. A slot with one argument
// uses the variable of `device`.
void graph_builder::add_computation_across(op_desc desc, std::size_t device) {
  handles_.make_desc(std::move(desc));
  const auto& op = handles_.add_op(op_kind::computation, device);
  const auto for_each = [&](const std::vector<op_slot>& slots, auto use) {
    for (auto& slot : slots)
      for (std::size_t i = 0; i < slot.arguments.size(); ++i)
        if (names_variable(slot.arguments[i]))
          use(handles_.id_of(slot.arguments[i]),
              slot.arguments.size() == 1 ? device : i);
  };
  for_each(op.desc->inputs,
           [this](auto name, auto on) { handles_.read(name, on); });
  for_each(op.desc->outputs,
           [this](auto name, auto on) { handles_.write(name, on); });
}

void graph_builder::add_loss_scale(const op_desc& op) {
  if (options_.scale == gradient_scale::custom)
    return;
  // Without merging, each device trains only on its own shard, so the shard is
  // the whole batch.
  auto one = options_.scale == gradient_scale::one
             || options_.strategy == merge_strategy::none;
  op_desc desc;
  desc.type = to_string(op_kind::scale_loss_grad);
  desc.attributes = op.attributes;
  desc.attributes.set("gradient_scale", std::string{one ? "one" : "coeff"});
  desc.set_output("Out", op.output_names());
  handles_.make_desc(std::move(desc));
  for (std::size_t device = 0; device < handles_.num_devices(); ++device) {
    handles_.add_op(op_kind::scale_loss_grad, device);
    for (auto name : outputs_)
      handles_.write(name, device);
  }
}

void graph_builder::add_program_op(std::size_t position) {
  auto& op = block_.ops[position];
  if (is_feed_or_fetch(op))
    return;
  list_ids(op.inputs, inputs_);
  list_ids(op.outputs, outputs_);
  if (touches_pending())
    flush_pending();
  if (is_loss_gradient(op))
    return add_loss_scale(op);
  if (op.type == to_string(op_kind::all_reduce))
    return add_all_reduce(op);
  if (plan_.gathers_from(position))
    return add_rest_of_gathered(op);
  if (auto merging = merging_updates_.find(position);
      merging != merging_updates_.end())
    return add_merging_update(op, *merging->second);
  handles_.describe(op);
  if (auto device = plan_.only_device[position])
    return add_computation(*device);
  add_computations();
}

// If the gradient of a parameter is gathered, each device computes the other
// outputs of the op.
void graph_builder::add_rest_of_gathered(const op_desc& op) {
  auto rest = without_gathered(op);
  if (!rest)
    return;
  list_ids(rest->outputs, outputs_);
  handles_.make_desc(*std::move(rest));
  add_computations();
}

void graph_builder::add_merging_update(const op_desc& op,
                                       const merged_gradient& g) {
  const auto devices = handles_.num_devices();
  const auto& completing = block_.ops[g.complete_after];
  add_computation_across(g.gathered_on
                           ? gathered_update(op, completing, devices)
                           : merging_update(op, devices),
                         *g.home);
}

void graph_builder::add_fetch(const std::string& name) {
  op_desc desc;
  desc.type = to_string(op_kind::fetch);
  desc.set_input("X", {name});
  handles_.make_desc(std::move(desc));
  const auto id = handles_.id_of(name);
  for (std::size_t device = 0; device < handles_.num_devices(); ++device) {
    if (!handles_.has_value(id, device)) {
      error_context where;
      where.variable = name;
      throw error{errc::not_found,
                  "cannot fetch \"" + name
                    + "\": no op reads or writes it, and it is not persistable",
                  std::move(where)};
    }
    handles_.add_op(op_kind::fetch, device).stream = stream_kind::fetch;
    handles_.read(id, device);
  }
}

void graph_builder::add_fetches() {
  std::set<std::string_view> done;
  for (auto& name : options_.fetches)
    if (done.insert(name).second)
      add_fetch(name);
}

// ---------------------------------------------------------------- collectives

std::vector<placed_var> graph_builder::on_all_devices(name_id name) const {
  std::vector<placed_var> result;
  for (std::size_t device = 0; device < handles_.num_devices(); ++device)
    result.push_back({name, device});
  return result;
}

std::vector<std::string>
graph_builder::names_of(const std::vector<placed_var>& vars) const {
  std::vector<std::string> result;
  for (auto& v : vars)
    result.emplace_back(handles_.name_of(v.name));
  return result;
}

op_handle&
graph_builder::add_collective(op_kind kind, std::size_t root,
                              const std::vector<placed_var>& inputs,
                              const std::vector<placed_var>& outputs) {
  op_desc desc;
  desc.type = to_string(kind);
  desc.set_input("X", names_of(inputs));
  desc.set_output("Out", names_of(outputs));
  handles_.make_desc(std::move(desc));
  auto& op = handles_.add_op(kind, inputs.empty() ? 0 : inputs.front().device);
  op.stream = stream_kind::collective;
  op.collective_index = num_collectives_++;
  op.root = static_cast<std::uint32_t>(root);
  for (auto& [name, device] : inputs)
    handles_.read(name, device);
  for (auto& [name, device] : outputs)
    handles_.write(name, device);
  return op;
}

/// Adds a collective for an update: of gradients or parameters.
void graph_builder::merge(op_kind kind, std::size_t root,
                          const std::vector<placed_var>& inputs,
                          const std::vector<placed_var>& outputs) {
  add_collective(kind, root, inputs, outputs).only_in_updates =
    options_.accumulate > 1;
}

std::optional<std::size_t> graph_builder::last_writer_of_loss() const {
  for (auto i = block_.ops.size(); i-- > 0;)
    if (std::ranges::count(block_.ops[i].output_names(), options_.loss) > 0)
      return i;
  return std::nullopt;
}

void graph_builder::gather_losses(std::size_t position) {
  if (position == loss_is_complete_after_)
    add_collective(op_kind::gather_losses, 0,
                   on_all_devices(handles_.id_of(options_.loss)), {});
}

// Bytes of a gradient if it can share an all-reduce: it must be dense and of
// known size.
std::optional<std::size_t>
graph_builder::fusible_bytes(const merged_gradient& g) const {
  auto* gradient = block_.find_var(g.gradient);
  auto* parameter = block_.find_var(g.parameter);
  if (gradient == nullptr || parameter == nullptr
      || gradient->kind != var_kind::dense || parameter->dims.has_unknown())
    return std::nullopt;
  auto numel = static_cast<std::size_t>(parameter->dims.numel());
  return numel * size_of(gradient->type);
}

bool graph_builder::touches_pending() const {
  auto any_pending = [this](const std::vector<name_id>& names) {
    return std::ranges::any_of(names, [this](name_id name) {
      return name < is_pending_.size() && is_pending_[name];
    });
  };
  return !pending_.empty() && (any_pending(inputs_) || any_pending(outputs_));
}

void graph_builder::flush_pending() {
  if (pending_.empty())
    return;
  std::vector<placed_var> vars;
  for (auto name : pending_) {
    is_pending_[name] = false;
    for (auto& var : on_all_devices(name))
      vars.push_back(var);
  }
  pending_.clear();
  pending_bytes_ = 0;
  merge(op_kind::all_reduce, 0, vars, vars);
}

void graph_builder::all_reduce(const merged_gradient& g) {
  auto bytes = fusible_bytes(g);
  const auto name = handles_.id_of(g.gradient);
  if (!bytes) {
    flush_pending();
    auto vars = on_all_devices(name);
    return merge(op_kind::all_reduce, 0, vars, vars);
  }
  auto limit = options_.lowering.fuse_all_reduce_bytes;
  auto type = block_.find_var(g.gradient)->type;
  if (pending_type_ != type || pending_bytes_ + *bytes > limit)
    flush_pending();
  pending_.push_back(name);
  is_pending_.resize(handles_.num_names());
  is_pending_[name] = true;
  pending_bytes_ += *bytes;
  pending_type_ = type;
  if (pending_bytes_ >= limit)
    flush_pending();
}

void graph_builder::reduce(const merged_gradient& g) {
  flush_pending();
  const auto name = handles_.id_of(g.gradient);
  merge(op_kind::reduce, *g.home, on_all_devices(name), {{name, *g.home}});
}

// Factors have one argument per device. The gradient also has one if every
// device updates the parameter.
void graph_builder::gather(const merged_gradient& g) {
  const auto receivers = g.home ? 1 : handles_.num_devices();
  add_computation_across(gathered_product(block_.ops[g.complete_after],
                                          handles_.num_devices(), receivers),
                         *g.gathered_on);
}

// An all_reduce that the program itself contains. It must be in place, so that
// nothing needs to be done for a single device.
void graph_builder::add_all_reduce(const op_desc& op) {
  const auto& name = op.only_input("X");
  if (op.only_output("Out") != name)
    throw error{errc::graph_invalid,
                "op all_reduce writes \"" + op.only_output("Out")
                  + "\" instead of \"" + name + "\", which it reads"};
  auto vars = on_all_devices(handles_.id_of(name));
  if (handles_.num_devices() > 1)
    add_collective(op_kind::all_reduce, 0, vars, vars);
}

void graph_builder::merge_gradients(std::size_t position) {
  auto& gradients = plan_.gradients;
  for (; next_gradient_ < gradients.size(); ++next_gradient_) {
    auto& g = gradients[next_gradient_];
    if (g.complete_after != position)
      return;
    if (g.merged_by)
      continue;
    if (g.gathered_on)
      gather(g);
    else if (g.home)
      reduce(g);
    else
      all_reduce(g);
  }
}

void graph_builder::broadcast_parameters(std::size_t position) {
  auto [first, last] = broadcasts_.equal_range(position);
  for (; first != last; ++first) {
    auto& g = *first->second;
    const auto name = handles_.id_of(g.parameter);
    if (handles_.is_shared(name))
      continue;
    flush_pending();
    merge(op_kind::broadcast, *g.home, {{name, *g.home}}, on_all_devices(name));
  }
}

ssa_graph graph_builder::build() {
  if (options_.spread_batch) {
    add_collective(op_kind::count_samples, 0, {}, {});
    loss_is_complete_after_ = last_writer_of_loss();
  }
  for (std::size_t i = 0; i < block_.ops.size(); ++i) {
    add_program_op(i);
    gather_losses(i);
    merge_gradients(i);
    broadcast_parameters(i);
  }
  flush_pending();
  add_fetches();
  auto graph = handles_.finish();
  if (options_.accumulate > 1)
    mark_updates(graph);
  graph.edges = derive_edges(graph);
  if (options_.spread_batch)
    order_batch_users(graph);
  return graph;
}

// ---------------------------------------------------------------- checks

void check_devices(const std::vector<device_id>& devices) {
  if (devices.empty())
    throw error{errc::invalid_argument, "a graph needs at least one device"};
  std::set<device_id> seen;
  for (auto& device : devices)
    if (!seen.insert(device).second)
      throw error{errc::invalid_argument,
                  "device " + to_string(device) + " is listed twice"};
}

void check_loss(const program& p, const build_options& options) {
  if (!options.loss.empty()) {
    p.main().var(options.loss); // throws if there is none
    return;
  }
  auto& ops = p.main().ops;
  auto backward = std::any_of(ops.begin(), ops.end(), [](const op_desc& op) {
    return (op.role() & role_backward) != 0;
  });
  if (backward && options.scale != gradient_scale::custom)
    find_loss(p); // throws if there is none
}

using shared_program = std::shared_ptr<const program>;

std::set<std::string> kept_names(const build_options& options) {
  std::set<std::string> kept(options.fetches.begin(), options.fetches.end());
  kept.insert(options.loss);
  return kept;
}

shared_program fused(shared_program p, const build_options& options) {
  if (!options.lowering.fuse_batch_norms || !has_batch_norms_to_fuse(*p))
    return p;
  return std::make_shared<const program>(
    fuse_batch_norms(*p, kept_names(options)));
}

shared_program recomputing(shared_program p, const build_options& options) {
  if (!options.lowering.recompute_activations
      || !has_activations_to_recompute(*p))
    return p;
  return std::make_shared<const program>(
    recompute_activations(*p, kept_names(options)));
}

shared_program separated(shared_program p, const build_options& options) {
  if (!options.lowering.separate_shape_inputs || !has_shape_inputs(*p))
    return p;
  return std::make_shared<const program>(separate_shape_inputs(*p));
}

shared_program in_place(shared_program p, const build_options& options) {
  if (!options.lowering.write_in_place || !has_ops_to_write_in_place(*p))
    return p;
  return std::make_shared<const program>(
    write_in_place(*p, kept_names(options)));
}

ssa_graph build_exposed(shared_program p, const build_options& options) {
  const auto merges =
    options.devices.size() > 1 && options.strategy != merge_strategy::none;
  if (merges || options.accumulate > 1)
    check_gradients_in_main(*p);
  if (has_update_counters(*p))
    p = std::make_shared<const program>(mark_update_counters(*p));
  p = fused(std::move(p), options);
  const auto which = options.lowering.sync_batch_norm
                       ? sync_batch_norm::all
                       : sync_batch_norm::as_written;
  if (merges && has_batch_norms_to_split(*p, which))
    p = std::make_shared<const program>(split_batch_norms(*p, which));
  // Shape inputs are separated first: an op that reads only a shape needs no
  // recomputed value.
  p = recomputing(separated(std::move(p), options), options);
  p = in_place(std::move(p), options);
  if (options.accumulate > 1)
    p = std::make_shared<const program>(accumulate_gradients(*p, options));
  return graph_builder{std::move(p), options}.build();
}

} // namespace

std::string_view to_string(merge_strategy strategy) noexcept {
  switch (strategy) {
  case merge_strategy::all_reduce: return "all_reduce";
  case merge_strategy::reduce: return "reduce";
  case merge_strategy::replicate: return "replicate";
  case merge_strategy::none: return "none";
  }
  return "unknown";
}

merge_strategy parse_merge_strategy(std::string_view name) {
  using enum merge_strategy;
  using entry = std::pair<std::string_view, merge_strategy>;
  return parse_name(
    "merge strategy", name,
    std::array{entry{"all_reduce", all_reduce}, entry{"reduce", reduce},
               entry{"replicate", replicate}, entry{"none", none}});
}

gradient_scale parse_gradient_scale(std::string_view name) {
  using enum gradient_scale;
  using entry = std::pair<std::string_view, gradient_scale>;
  return parse_name("gradient scale", name,
                    std::array{entry{"coeff", coeff}, entry{"one", one},
                               entry{"custom", custom}});
}

ssa_graph build_ssa_graph(std::shared_ptr<const program> p,
                          const build_options& options) {
  check_devices(options.devices);
  if (options.accumulate == 0)
    throw error{errc::invalid_argument, "accumulate is 0"};
  if (p->blocks.empty())
    throw error{errc::graph_invalid, "the program has no block"};
  check_loss(*p, options);
  if (p->blocks.size() > 1)
    p = std::make_shared<const program>(expose_sub_blocks(*p));
  return build_exposed(std::move(p), options);
}

ssa_graph build_ssa_graph(const program& p, const build_options& options) {
  return build_ssa_graph(std::make_shared<const program>(p), options);
}

} // namespace troupe::graph

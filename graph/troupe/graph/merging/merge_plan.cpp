// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/merging/merge_plan.hpp>

#include <troupe/graph/argument.hpp>
#include <troupe/graph/merging/gathered_product.hpp>
#include <troupe/graph/merging/merging_update.hpp>
#include <troupe/graph/sub_blocks.hpp>
#include <troupe/graph/variable_uses.hpp>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe::graph {

namespace {

using name_index = std::map<std::string_view, std::size_t, std::less<>>;

bool is_backward(const op_desc& op) {
  return (op.role() & role_backward) != 0;
}

// In newer versions of Paddle, learning-rate ops also have role Optimize.
bool is_optimizer(const op_desc& op) {
  return (op.role() & role_optimize) != 0 && (op.role() & role_lr_sched) == 0;
}

// The parameter of each gradient, and the gradients in the order in which they
// are first named.
struct role_pairs {
  std::map<std::string, std::string, std::less<>> parameter_of;
  std::vector<std::string> gradients;
};

// If an op accumulates a gradient over steps, its op_role_var names the sum.
// The devices must merge the gradient that it adds in each step, so that all of
// them accumulate the same.
const std::string& merged_part(const op_desc& op, const std::string& gradient) {
  return op.attributes.has(merge_condition) ? op.only_input("X") : gradient;
}

role_pairs find_role_pairs(const block& b) {
  role_pairs result;
  for (auto& op : b.ops) {
    if (!is_backward(op) && !op.attributes.has(merge_condition))
      continue;
    for (auto& [parameter, named] : op.role_vars()) {
      const auto& gradient = merged_part(op, named);
      if (result.parameter_of.emplace(gradient, parameter).second)
        result.gradients.push_back(gradient);
    }
  }
  return result;
}

std::map<std::string, std::size_t, std::less<>>
find_last_backward_writers(const block& b, const role_pairs& pairs) {
  std::map<std::string, std::size_t, std::less<>> last;
  for (std::size_t i = 0; i < b.ops.size(); ++i) {
    if (!is_backward(b.ops[i]))
      continue;
    for (auto& name : b.ops[i].output_names())
      if (pairs.parameter_of.contains(name))
        last.insert_or_assign(name, i);
  }
  return last;
}

std::size_t numel_or_zero(const block& b, std::string_view name) {
  auto* var = b.find_var(name);
  if (var == nullptr)
    return 0;
  std::size_t result = 1;
  for (auto extent : var->dims)
    result *= static_cast<std::size_t>(std::max<std::int64_t>(extent, 0));
  return result;
}

// Who updates a variable or runs an op of the update. `nobody`: it concerns no
// parameter. `everyone`: all devices. Other values number the groups of
// parameters that share a home.
using owner = std::size_t;
constexpr owner nobody = merged_gradient::never;
constexpr owner everyone = nobody - 1;

owner join(owner a, owner b) {
  if (a == nobody)
    return b;
  if (b == nobody || a == b)
    return a;
  return everyone;
}

// The variables of an optimizer op, or a parameter and its gradient. The joined
// owner of all of them becomes the owner of the outputs.
struct ownership_rule {
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
};

std::vector<std::string_view> variables_in(const std::vector<op_slot>& slots) {
  std::vector<std::string_view> names;
  for (auto& slot : slots)
    for (auto& name : slot.arguments)
      if (names_variable(name))
        names.push_back(name);
  return names;
}

ownership_rule rule_of(const op_desc& op) {
  return {variables_in(op.inputs), variables_in(op.outputs)};
}

// Finds the owner of each parameter, gradient and optimizer state: applies the
// rules until no owner changes. Each owner changes at most twice.
class owner_search {
public:
  owner_search(const block& b, const std::vector<merged_gradient>& gradients,
               merge_strategy strategy);

  void run(const std::vector<std::string>& fetches);
  owner of(std::string_view name) const;
  owner of(const ownership_rule& rule) const;
  std::size_t last_update(std::string_view parameter) const;

private:
  struct updates {
    std::size_t first;
    std::size_t last;
  };

  void find_updates();
  void share_what_others_read();
  bool may_read(const std::string& name, std::size_t op) const;
  void list_rules();
  void apply(const ownership_rule& rule);
  void raise(std::string_view name, owner to);
  void reopen(std::size_t rule);

  const block& block_;
  const std::vector<merged_gradient>& gradients_;
  std::map<std::string, owner, std::less<>> owners_;
  std::map<std::string, updates, std::less<>> updates_; // optimizer's outputs
  std::vector<ownership_rule> rules_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> rules_of_;
  std::vector<std::size_t> open_; // rules to apply, each once
  std::vector<bool> is_open_;     // by rule
  name_index parameters_;
  name_index complete_after_; // of gradients
};

owner_search::owner_search(const block& b,
                           const std::vector<merged_gradient>& gradients,
                           merge_strategy strategy)
  : block_(b), gradients_(gradients) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    auto& g = gradients[i];
    auto group = strategy == merge_strategy::replicate ? owner{0} : i;
    raise(g.parameter, group);
    raise(g.gradient, group);
    parameters_.emplace(g.parameter, i);
    complete_after_.emplace(g.gradient, g.complete_after);
  }
}

owner owner_search::of(std::string_view name) const {
  auto at = owners_.find(name);
  return at == owners_.end() ? nobody : at->second;
}

owner owner_search::of(const ownership_rule& rule) const {
  owner result = nobody;
  for (auto* names : {&rule.inputs, &rule.outputs})
    for (auto name : *names)
      result = join(result, of(name));
  return result;
}

std::size_t owner_search::last_update(std::string_view parameter) const {
  auto at = updates_.find(parameter);
  return at == updates_.end() ? merged_gradient::never : at->second.last;
}

void owner_search::raise(std::string_view name, owner to) {
  if (to == nobody)
    return;
  auto at = owners_.try_emplace(std::string{name}, nobody).first;
  auto joined = join(at->second, to);
  if (std::exchange(at->second, joined) == joined)
    return;
  if (auto touching = rules_of_.find(name); touching != rules_of_.end())
    for (auto rule : touching->second)
      reopen(rule);
}

void owner_search::reopen(std::size_t rule) {
  if (is_open_[rule])
    return;
  is_open_[rule] = true;
  open_.push_back(rule);
}

void owner_search::find_updates() {
  for (std::size_t i = 0; i < block_.ops.size(); ++i) {
    if (!is_optimizer(block_.ops[i]))
      continue;
    for (auto& name : block_.ops[i].output_names()) {
      auto [at, added] = updates_.try_emplace(name, updates{i, i});
      at->second.last = i;
    }
  }
}

// True if an op that runs on every device reads the same value of `name` on
// each, although only the home has the merged gradient and runs the update.
bool owner_search::may_read(const std::string& name, std::size_t op) const {
  if (auto g = complete_after_.find(name); g != complete_after_.end())
    return op <= g->second;
  auto update = updates_.find(name);
  if (update == updates_.end())
    return true;
  auto between = update->second.first < op && op < update->second.last;
  return parameters_.contains(name) && !between;
}

void owner_search::share_what_others_read() {
  for (std::size_t i = 0; i < block_.ops.size(); ++i) {
    if (is_optimizer(block_.ops[i]))
      continue;
    for (auto& name : block_.ops[i].input_names())
      if (!may_read(name, i))
        raise(name, everyone);
  }
}

void owner_search::list_rules() {
  for (auto& op : block_.ops)
    if (is_optimizer(op))
      rules_.push_back(rule_of(op));
  for (auto& g : gradients_)
    rules_.push_back({{}, {g.parameter, g.gradient}});
  is_open_.resize(rules_.size());
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    for (auto* names : {&rules_[i].inputs, &rules_[i].outputs})
      for (auto name : *names)
        rules_of_[name].push_back(i);
    reopen(i);
  }
}

void owner_search::apply(const ownership_rule& rule) {
  const auto all = of(rule);
  for (auto name : rule.outputs)
    raise(name, all);
  if (all == everyone)
    for (auto name : rule.inputs)
      if (of(name) != nobody)
        raise(name, everyone);
}

void owner_search::run(const std::vector<std::string>& fetches) {
  find_updates();
  share_what_others_read();
  for (auto& name : fetches)
    if (!may_read(name, block_.ops.size()))
      raise(name, everyone);
  list_rules();
  while (!open_.empty()) {
    const auto next = open_.back();
    open_.pop_back();
    is_open_[next] = false;
    apply(rules_[next]);
  }
}

void choose_homes(const block& b, const build_options& options,
                  const owner_search& owners,
                  std::vector<merged_gradient>& gradients) {
  std::vector<std::size_t> load(options.devices.size(), 0);
  for (auto& g : gradients) {
    if (owners.of(g.gradient) == everyone)
      continue;
    auto lightest = std::min_element(load.begin(), load.end());
    if (options.strategy == merge_strategy::replicate)
      lightest = load.begin();
    *lightest += numel_or_zero(b, g.parameter);
    g.home = static_cast<std::size_t>(lightest - load.begin());
    g.broadcast_after = owners.last_update(g.parameter);
  }
}

// If a gradient has no home, chooses the device that has gathered the fewest
// elements so far.
void choose_gatherers(const block& b, const build_options& options,
                      std::vector<merged_gradient>& gradients) {
  std::vector<std::size_t> load(options.devices.size(), 0);
  for (auto& g : gradients) {
    if (!is_worth_gathering(b, b.ops[g.complete_after], g.parameter, g.gradient,
                            options.lowering.batch))
      continue;
    const auto lightest = std::ranges::min_element(load) - load.begin();
    g.gathered_on = g.home.value_or(static_cast<std::size_t>(lightest));
    load[*g.gathered_on] += numel_or_zero(b, g.parameter);
  }
}

void choose_merging_updates(const block& b,
                            std::vector<merged_gradient>& gradients) {
  const auto uses = find_uses(b);
  for (auto& g : gradients) {
    if (!g.home)
      continue;
    const auto update =
      find_merging_update(b, uses, g.gradient, g.complete_after);
    if (update
        && (!g.gathered_on
            || keeps_factors(uses, b.ops[g.complete_after], g.complete_after,
                             *update)))
      g.merged_by = update;
  }
}

// Chooses homes, and the ops of role Optimize that run only there.
void place_updates(const block& b, const build_options& options,
                   merge_plan& plan) {
  owner_search owners{b, plan.gradients, options.strategy};
  owners.run(options.fetches);
  choose_homes(b, options, owners, plan.gradients);
  auto replicate = options.strategy == merge_strategy::replicate;
  for (std::size_t i = 0; i < b.ops.size(); ++i) {
    auto owner_of_op =
      is_optimizer(b.ops[i]) ? owners.of(rule_of(b.ops[i])) : nobody;
    if (owner_of_op < everyone)
      plan.only_device[i] = replicate ? 0 : plan.gradients[owner_of_op].home;
  }
}

} // namespace

bool merge_plan::gathers_from(std::size_t op) const {
  const auto completed = std::ranges::equal_range(
    gradients, op, {}, &merged_gradient::complete_after);
  return std::ranges::any_of(completed,
                             [](auto& g) { return g.gathered_on.has_value(); });
}

std::vector<merged_gradient> find_gradients(const block& b) {
  auto pairs = find_role_pairs(b);
  auto complete = find_last_backward_writers(b, pairs);
  std::vector<merged_gradient> result;
  for (auto& gradient : pairs.gradients)
    if (auto at = complete.find(gradient); at != complete.end())
      result.push_back({.parameter = pairs.parameter_of.at(gradient),
                        .gradient = gradient,
                        .complete_after = at->second,
                        .home = std::nullopt});
  std::stable_sort(result.begin(), result.end(), [](auto& a, auto& c) {
    return a.complete_after < c.complete_after;
  });
  return result;
}

merge_plan plan_merges(const block& b, const build_options& options) {
  merge_plan plan{.gradients = {}, .only_device = {}};
  plan.only_device.resize(b.ops.size());
  if (options.devices.size() < 2 || options.strategy == merge_strategy::none)
    return plan;
  plan.gradients = find_gradients(b);
  if (options.strategy != merge_strategy::all_reduce)
    place_updates(b, options, plan);
  if (options.lowering.gather_products)
    choose_gatherers(b, options, plan.gradients);
  if (options.lowering.merge_in_updates)
    choose_merging_updates(b, plan.gradients);
  return plan;
}

std::vector<std::string_view> find_sharable(const block& b,
                                            const merge_plan& plan) {
  // For each persistable variable: the device that writes it, and whether
  // several do. Only persistable variables can be shared: few names in a large
  // program.
  struct written {
    std::optional<std::size_t> device;
    bool by_several = false;
  };
  std::map<std::string_view, written> persistable;
  for (auto& [name, declared] : b.vars)
    if (declared.persistable)
      persistable.emplace(name, written{});
  for (std::size_t i = 0; i < b.ops.size(); ++i)
    for (auto name : variables_in(b.ops[i].outputs))
      if (auto found = persistable.find(name); found != persistable.end()) {
        auto& [device, by_several] = found->second;
        const auto here = plan.only_device[i];
        by_several |= !here || (device && device != here);
        device = here;
      }
  std::vector<std::string_view> sharable;
  for (auto& [name, w] : persistable)
    if (!w.by_several)
      sharable.push_back(name);
  return sharable;
}

} // namespace troupe::graph

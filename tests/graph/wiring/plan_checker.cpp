// SPDX-License-Identifier: Apache-2.0
#include <graph/wiring/plan_checker.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

namespace troupe::test {

using graph::wired_edge;

namespace {

/// Which handles wait for which, through chains of messages, and how many steps
/// later.
class order {
public:
  order(const std::vector<wired_edge>& sent, const graph::ssa_graph& g)
    : steps_(g.max_distance() + 1u), told_by_(g.size()), seen_(g.size()) {
    for (auto& e : sent)
      if (e.from != no_handle)
        told_by_[e.from].push_back({e.to, e.distance});
  }

  /// True if `to` waits for `from` of `distance` steps before.
  bool leads(handle_id from, handle_id to, std::uint32_t distance) {
    auto& seen = seen_[from];
    if (seen.empty())
      seen = all_behind(from);
    return seen[to * steps_ + distance];
  }

private:
  std::vector<bool> all_behind(handle_id from) const {
    std::vector<bool> behind(told_by_.size() * steps_);
    std::vector<std::pair<handle_id, std::uint32_t>> todo{{from, 0}};
    while (!todo.empty()) {
      const auto [at, passed] = todo.back();
      todo.pop_back();
      for (auto [to, distance] : told_by_[at])
        if (passed + distance < steps_
            && !behind[to * steps_ + passed + distance]) {
          behind[to * steps_ + passed + distance] = true;
          todo.emplace_back(to, passed + distance);
        }
    }
    return behind;
  }

  std::size_t steps_;
  std::vector<std::vector<std::pair<handle_id, std::uint32_t>>> told_by_;
  std::vector<std::vector<bool>> seen_; // by handle; computed on first use
};

class checker {
public:
  checker(const loose_plan& plan, const graph::ssa_graph& g, bool overlap)
    : plan_(plan), g_(g), overlap_(overlap), order_(plan.sent, g) {}

  std::string fault() {
    for (auto check : {&checker::missing_order, &checker::untold_output,
                       &checker::early_handle, &checker::forgotten_handle,
                       &checker::early_release})
      if (auto found = (this->*check)(); !found.empty())
        return found;
    return {};
  }

private:
  std::string name(handle_id id) const { return graph::handle_name(g_, id); }
  bool is_before(handle_id from, handle_id to, std::uint32_t distance = 0) {
    return (from == to && distance == 0) || order_.leads(from, to, distance);
  }

  std::string missing_order() {
    for (auto& e : g_.edges)
      if (e.kind != graph::edge_kind::transfer && (overlap_ || e.distance == 0)
          && !is_before(e.from, e.to, e.distance))
        return name(e.to) + " does not wait for " + name(e.from);
    for (auto& o : g_.ops)
      if (overlap_ && !is_before(o.id, o.id, 1))
        return name(o.id) + " does not wait for itself";
    return {};
  }

  std::string untold_output() {
    for (auto& o : g_.ops)
      for (auto output : o.outputs)
        if (std::ranges::none_of(plan_.sent, [&](const wired_edge& e) {
              return e.from == o.id && e.to == output && e.distance == 0;
            }))
          return name(o.id) + " does not tell " + name(output);
    return {};
  }

  // Every handle must get a message. An op must also wait for the start of its
  // step.
  std::string early_handle() {
    std::vector<bool> told(g_.size());
    std::vector<bool> begun(g_.size());
    for (auto& e : plan_.sent) {
      told[e.to] = true;
      if (e.from == no_handle)
        for (handle_id id = 0; id < g_.size(); ++id)
          begun[id] = begun[id] || is_before(e.to, id);
    }
    for (handle_id id = 0; id < g_.size(); ++id) {
      if (!told[id])
        return "nobody tells " + name(id);
      if (g_.is_op(id) && !begun[id])
        return name(id) + " does not wait for the start of the step";
    }
    return {};
  }

  std::string forgotten_handle() {
    for (handle_id id = 0; id < g_.size(); ++id) {
      auto waited_for = false;
      for (handle_id end = 0; end < g_.size() && !waited_for; ++end)
        waited_for = plan_.ends_step[end] && is_before(id, end);
      if (!waited_for)
        return "the end of the step does not wait for " + name(id);
    }
    return {};
  }

  std::string early_release() {
    for (auto& o : g_.ops)
      for (auto list : {o.inputs, o.outputs})
        for (std::size_t i = 0; i < list.size(); ++i) {
          const auto& v = g_.var(list[i]);
          const auto is_input = list.data() == o.inputs.data();
          const auto behind = is_input ? g_.distance_of(o.id, i) : 0;
          if (!v.persistable && !is_kept_for(o.id, v.storage, behind))
            return name(v.id) + " is given back while " + name(o.id)
                   + " uses it";
        }
    return {};
  }

  /// True if the op, which uses the storage's value of `behind` steps before,
  /// releases this value or comes before an op that does.
  bool is_kept_for(handle_id op, std::uint32_t storage, std::uint32_t behind) {
    return std::ranges::any_of(
      plan_.releases, [&](const graph::planned_release& r) {
        return r.storage == storage && r.distance >= behind
               && is_before(op, r.op, r.distance - behind);
      });
  }

  const loose_plan& plan_;
  const graph::ssa_graph& g_;
  bool overlap_;
  order order_;
};

} // namespace

loose_plan::loose_plan(const graph::wiring_plan& plan,
                       const graph::ssa_graph& g)
  : releases(plan.releases()) {
  std::ranges::copy_if(plan.edges(), std::back_inserter(sent),
                       [](const wired_edge& e) { return e.sent == 1; });
  for (handle_id id = 0; id < g.size(); ++id)
    ends_step.push_back(plan.ends_step(id));
}

std::string fault_of(const loose_plan& plan, const graph::ssa_graph& g,
                     bool steps_overlap) {
  return checker{plan, g, steps_overlap}.fault();
}

} // namespace troupe::test

// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tasks/control_flow.hpp>
#include <troupe/actors/tasks/op_tasks.hpp>

#include <troupe/graph/passes/accumulate_gradients.hpp>
#include <troupe/kernels/lod_sharing.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace troupe::actors {

namespace {

/// True if a device without samples has nothing to do for the op. A sum over
/// steps has the samples of others.
bool is_per_sample(const graph::op_desc& op) {
  const auto base = op.role() & ~graph::role_loss;
  return (base == graph::role_forward || base == graph::role_backward)
         && op.type != graph::accumulate_type;
}

/// The slot of the step `distance` steps before that of `slot`.
std::uint32_t slot_before(std::uint32_t slot, std::uint32_t distance,
                          std::size_t slots) {
  return (slot - distance) & (static_cast<std::uint32_t>(slots) - 1);
}

/// Runs the kernel of one op of the program. Allocated in the graph's memory
/// and followed by pointers to its variables: for each step slot, the inputs
/// and then the outputs. What all runs share (names, attributes) is read from
/// the op's description.
class computation_task final : public op_task {
public:
  static void* operator new(std::size_t size, const task_place& place,
                            std::size_t arguments) {
    return place.memory.allocate(size
                                 + place.slots * arguments * sizeof(variable*));
  }
  static void operator delete(void*, const task_place&, std::size_t) noexcept {}
  static void operator delete(void*) noexcept {} // the graph frees it

  computation_task(const graph::op_desc& desc, const task_place& place,
                   std::unique_ptr<kernel> code,
                   std::span<const task_argument> inputs,
                   std::span<const task_argument> outputs, bool check_nan)
    : kernel_(std::move(code)), desc_(desc), place_(place),
      inputs_(static_cast<std::uint32_t>(inputs.size())),
      outputs_(static_cast<std::uint32_t>(outputs.size())),
      rule_(lod_rule_of(desc.type)), check_nan_(check_nan),
      per_sample_(is_per_sample(desc)),
      takes_absent_inputs_(takes_absent_inputs(desc.type)) {
    auto* next = variables_in(0);
    for (std::uint32_t slot = 0; slot < place.slots; ++slot)
      for (auto arguments : {inputs, outputs})
        for (auto& a : arguments)
          *next++ = a.value
                      ? &a.value->at(slot_before(slot, a.distance, place.slots))
                      : nullptr;
    // The result holds for all slots, because each has its own variables in the
    // same positions.
    lender_ = find_lod_lenders(rule_, {desc.inputs, variables_in(0)},
                               {desc.outputs, variables_in(0) + inputs_})
                .which;
  }

  launch_status run(step_state& step, completion&) override {
    auto* const variables = variables_in(step.slot);
    const std::span<variable* const> inputs{variables, inputs_};
    if ((step.idle(place_.shard) && (per_sample_ || lacks_inputs(inputs)))
        || (step.has_no_past && lacks_inputs(inputs)))
      return launch_status::done;
    kernel_context ctx{place_.on,
                       &place_.queue,
                       desc_.attributes,
                       {desc_.inputs, variables},
                       {desc_.outputs, variables + inputs_},
                       step.shards[place_.shard]};
    if (may_lend(inputs))
      run_kernel(*kernel_, rule_, ctx);
    else
      kernel_->run(ctx);
    if (check_nan_)
      require_finite_outputs(ctx);
    return launch_status::done;
  }

private:
  variable** variables_in(std::uint32_t slot) noexcept {
    return reinterpret_cast<variable**>(this + 1)
           + slot * (inputs_ + std::size_t{outputs_});
  }

  /// False if no input that may lend its levels has levels. The kernel can then
  /// be called directly.
  bool may_lend(std::span<variable* const> inputs) const {
    if (lender_ == lod_lenders::none)
      return false;
    if (lender_ == lod_lenders::several)
      return true;
    const auto& v = *inputs[lender_];
    return v.is_tensor() && v.as_tensor().levels();
  }

  bool lacks_inputs(std::span<variable* const> inputs) const {
    return !takes_absent_inputs_
           && std::ranges::any_of(
             inputs, [](const variable* in) { return in && !in->has_value(); });
  }

  static void require_finite_outputs(const kernel_context& ctx) {
    ctx.outputs().for_each([](const op_argument& out) {
      if (out.var)
        require_finite(*out.var, out.name);
    });
  }

  std::unique_ptr<kernel> kernel_;
  const graph::op_desc& desc_;
  const task_place& place_; // shared by the tasks of its stream
  std::uint32_t inputs_;
  std::uint32_t outputs_;
  std::uint32_t lender_; // see lod_lenders
  lod_rule rule_;
  bool check_nan_ : 1;
  bool per_sample_ : 1;
  bool takes_absent_inputs_ : 1;
};

static_assert(sizeof(computation_task) == 48);
static_assert(alignof(computation_task) == alignof(variable*));

template <class T>
bool all_finite(const tensor& t) {
  for (auto v : t.values<T>())
    if (!std::isfinite(v))
      return false;
  return true;
}

bool all_finite(const tensor& t) {
  if (!t.is_plain()) {
    arena host{make_host_memory_source()}; // its blocks outlive it
    return all_finite(clone(t, host));
  }
  switch (t.type()) {
  case dtype::float32: return all_finite<float>(t);
  case dtype::float64: return all_finite<double>(t);
  default: return true;
  }
}

} // namespace

std::unique_ptr<op_task>
make_computation_task(const graph::op_desc& desc, const task_place& place,
                      std::unique_ptr<kernel> code,
                      std::span<const task_argument> inputs,
                      std::span<const task_argument> outputs, bool check_nan) {
  return std::unique_ptr<op_task>{
    new (place, inputs.size() + outputs.size()) computation_task{
      desc, place, std::move(code), inputs, outputs, check_nan}};
}

void require_finite(const variable& value, std::string_view name) {
  const tensor* t = nullptr;
  if (value.is_tensor())
    t = &value.as_tensor();
  else if (value.is_rows())
    t = &value.as_rows().values;
  if (t && *t && !all_finite(*t))
    throw error(errc::not_finite, "a value is not finite",
                {.variable = std::string{name}});
}

} // namespace troupe::actors

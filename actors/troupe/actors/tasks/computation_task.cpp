// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tasks/control_flow.hpp>
#include <troupe/actors/tasks/op_tasks.hpp>

#include <troupe/graph/dtype_number.hpp>
#include <troupe/kernels/lod_sharing.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace troupe::actors {

namespace {

bool is_forward_or_backward(std::int32_t role) {
  const auto base = role & ~graph::role_loss;
  return base == graph::role_forward || base == graph::role_backward;
}

/// The slot of the step `distance` steps before that of `slot`.
std::uint32_t slot_before(std::uint32_t slot, std::uint32_t distance,
                          std::size_t slots) {
  return (slot - distance) & (static_cast<std::uint32_t>(slots) - 1);
}

/// Binds arguments to the values of a step slot.
std::span<const op_argument> bind(std::span<const task_argument> arguments,
                                  std::uint32_t slot, std::size_t slots,
                                  task_memory& memory) {
  auto* bound = static_cast<op_argument*>(
    memory.allocate(arguments.size() * sizeof(op_argument)));
  auto* next = bound;
  for (auto& a : arguments)
    new (next++) op_argument{
      a.slot, a.value ? a.value->name() : std::string_view{},
      a.value ? &a.value->at(slot_before(slot, a.distance, slots)) : nullptr};
  return {bound, arguments.size()};
}

/// Prepared data for a run in one step slot.
struct prepared_run {
  kernel* code; ///< while `lender` has no levels
  const variable* lender;
  kernel_context context;
};

/// Allocated in the graph's memory and followed by its prepared runs, so that a
/// small op touches only one cache line of them.
class computation_task final : public op_task {
public:
  static void* operator new(std::size_t size, const task_place& place) {
    return place.memory.allocate(size
                                 + place.steps.size() * sizeof(prepared_run));
  }
  static void operator delete(void*, const task_place&) noexcept {}
  static void operator delete(void*) noexcept {} // the graph frees it

  computation_task(const graph::op_desc& desc, const task_place& place,
                   std::unique_ptr<kernel> code,
                   std::span<const task_argument> inputs,
                   std::span<const task_argument> outputs, bool check_nan)
    : kernel_(std::move(code)),
      device_index_(static_cast<std::uint32_t>(place.device_index)),
      check_nan_(check_nan), per_sample_(is_forward_or_backward(desc.role())),
      takes_absent_inputs_(takes_absent_inputs(desc.type)) {
    for (std::uint32_t slot = 0; slot < place.steps.size(); ++slot) {
      const auto slots = place.steps.size();
      const auto in = bind(inputs, slot, slots, place.memory);
      const auto out = bind(outputs, slot, slots, place.memory);
      const auto bypass = bypass_lod(*kernel_, in, out)
                            .value_or(lod_bypass{kernel_.get(), nullptr});
      new (&run_in(slot)) prepared_run{
        bypass.code, bypass.lender,
        kernel_context{place.on, &place.queue, desc.attributes, in, out,
                       place.steps[slot]->devices[place.device_index]}};
    }
  }

  launch_status run(step_state& step, completion&) override {
    auto& prepared = run_in(step.slot);
    auto& ctx = prepared.context;
    if ((step.idle(device_index_) && (per_sample_ || lacks_inputs(ctx)))
        || (step.has_no_past && lacks_inputs(ctx)))
      return launch_status::done;
    const auto lends = prepared.lender && has_levels(*prepared.lender);
    (lends ? kernel_.get() : prepared.code)->run(ctx);
    if (check_nan_)
      require_finite_outputs(ctx);
    return launch_status::done;
  }

private:
  prepared_run& run_in(std::uint32_t slot) {
    return reinterpret_cast<prepared_run*>(this + 1)[slot];
  }

  static bool has_levels(const variable& v) {
    return v.is_tensor() && v.as_tensor().levels();
  }

  bool lacks_inputs(const kernel_context& ctx) const {
    return !takes_absent_inputs_
           && std::ranges::any_of(ctx.inputs(), [](const op_argument& in) {
                return in.var && !in.var->has_value();
              });
  }

  static void require_finite_outputs(const kernel_context& ctx) {
    for (auto& out : ctx.outputs())
      if (out.var)
        require_finite(*out.var, out.name);
  }

  std::unique_ptr<kernel> kernel_;
  std::uint32_t device_index_;
  bool check_nan_;
  bool per_sample_;
  bool takes_absent_inputs_;
};

static_assert(alignof(computation_task) == alignof(void*)
              && alignof(prepared_run) == alignof(void*));
static_assert(std::is_trivially_destructible_v<prepared_run>);
static_assert(std::is_trivially_destructible_v<op_argument>);

class scale_loss_grad_task final : public op_task {
public:
  scale_loss_grad_task(const graph::op_desc& desc, device& on,
                       std::size_t device_index, const storage& out)
    : device_(on), device_index_(device_index),
      weigh_(desc.attributes.get_string("gradient_scale", "coeff") == "coeff"),
      dims_(desc.attributes.get_ints("shape", {})),
      type_(graph::dtype_of_number(desc.attributes.get_int("dtype", float32))),
      out_(out) {}

  launch_status run(step_state& step, completion&) override {
    const auto& info = step.devices[device_index_];
    if (info.shard_samples == 0)
      return launch_status::done;
    auto host = tensor::make(host_, dims_, dtype::float64);
    const double weight = weigh_ ? static_cast<double>(info.shard_samples)
                                     / static_cast<double>(info.batch_samples)
                                 : 1.0;
    std::ranges::fill(host.values<double>(), weight);
    out_.at(step.slot).set(device_.to_device(cast(host, type_, host_)));
    return launch_status::done;
  }

private:
  static constexpr std::int64_t float32 = 5; // number in framework.proto

  device& device_;
  std::size_t device_index_;
  bool weigh_;
  shape dims_;
  dtype type_;
  storage out_;
  arena host_{make_host_memory_source()};
};

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
  return std::unique_ptr<op_task>{new (place) computation_task{
    desc, place, std::move(code), inputs, outputs, check_nan}};
}

std::unique_ptr<op_task> make_scale_loss_grad_task(const graph::op_desc& desc,
                                                   device& on,
                                                   std::size_t device_index,
                                                   const storage& out) {
  return std::make_unique<scale_loss_grad_task>(desc, on, device_index, out);
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

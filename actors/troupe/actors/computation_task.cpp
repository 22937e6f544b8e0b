// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/control_flow.hpp>
#include <troupe/actors/op_tasks.hpp>

#include <troupe/graph/dtype_number.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe::actors {

namespace {

/// Arguments of a kernel, bound once for each slot that a step may have.
class bound_arguments {
public:
  bound_arguments(const std::vector<task_argument>& arguments,
                  std::uint32_t slots)
    : count_(arguments.size()),
      bound_(std::make_unique<op_argument[]>(slots * arguments.size())) {
    auto* next = bound_.get();
    for (std::uint32_t slot = 0; slot < slots; ++slot)
      for (auto& a : arguments)
        *next++ = a.value
                    ? op_argument{a.slot, a.value->name(), &a.value->at(slot)}
                    : op_argument{a.slot, {}, nullptr};
  }

  std::span<const op_argument> of_slot(std::uint32_t slot) const {
    return {&bound_[slot * count_], count_};
  }

private:
  std::size_t count_;
  std::unique_ptr<op_argument[]> bound_;
};

bool is_forward_or_backward(std::int32_t role) {
  const auto base = role & ~graph::role_loss;
  return base == graph::role_forward || base == graph::role_backward;
}

/// Aligned so that what a run reads of it is one cache line.
class alignas(64) computation_task final : public op_task {
public:
  computation_task(const graph::op_desc& desc, device& on,
                   std::size_t device_index, std::unique_ptr<kernel> code,
                   const std::vector<task_argument>& inputs,
                   const std::vector<task_argument>& outputs,
                   std::uint32_t slots, bool check_nan)
    : kernel_(std::move(code)), device_(on),
      device_index_(static_cast<std::uint32_t>(device_index)),
      check_nan_(check_nan), per_sample_(is_forward_or_backward(desc.role())),
      takes_absent_inputs_(takes_absent_inputs(desc.type)),
      inputs_(inputs, slots), outputs_(outputs, slots),
      attributes_(desc.attributes), input_storages_(storages_of(inputs)),
      output_storages_(storages_of(outputs)) {}

  void run(step_state& step, stream& on) override {
    if (step.idle(device_index_) && nothing_to_do(step.slot))
      return;
    kernel_context ctx{device_,
                       &on,
                       attributes_,
                       inputs_.of_slot(step.slot),
                       outputs_.of_slot(step.slot),
                       step.devices[device_index_]};
    kernel_->run(ctx);
    if (check_nan_)
      for (auto* s : output_storages_)
        require_finite(s->at(step.slot), s->name());
  }

private:
  bool nothing_to_do(std::uint32_t slot) const {
    if (per_sample_)
      return true;
    if (takes_absent_inputs_)
      return false;
    return std::ranges::any_of(input_storages_, [slot](storage* s) {
      return !s->persistable() && !s->at(slot).has_value();
    });
  }

  static std::vector<storage*>
  storages_of(const std::vector<task_argument>& arguments) {
    std::vector<storage*> present;
    for (auto& a : arguments)
      if (a.value)
        present.push_back(a.value);
    return present;
  }

  // What a run reads comes first.
  std::unique_ptr<kernel> kernel_;
  device& device_;
  std::uint32_t device_index_;
  bool check_nan_;
  bool per_sample_;
  bool takes_absent_inputs_;
  bound_arguments inputs_;
  bound_arguments outputs_;
  attribute_map attributes_;
  std::vector<storage*> input_storages_;
  std::vector<storage*> output_storages_;
};

class scale_loss_grad_task final : public op_task {
public:
  scale_loss_grad_task(const graph::op_desc& desc, device& on,
                       std::size_t device_index, storage& out)
    : device_(on), device_index_(device_index),
      weigh_(desc.attributes.get_string("gradient_scale", "coeff") == "coeff"),
      dims_(desc.attributes.get_ints("shape", {})),
      type_(graph::dtype_of_number(desc.attributes.get_int("dtype", float32))),
      out_(out) {}

  void run(step_state& step, stream&) override {
    const auto& info = step.devices[device_index_];
    if (info.shard_samples == 0)
      return;
    auto host = tensor::make(host_, dims_, dtype::float64);
    const double weight = weigh_ ? static_cast<double>(info.shard_samples)
                                     / static_cast<double>(info.batch_samples)
                                 : 1.0;
    std::ranges::fill(host.values<double>(), weight);
    out_.at(step.slot).set(device_.to_device(cast(host, type_, host_)));
  }

private:
  static constexpr std::int64_t float32 = 5; // of framework.proto

  device& device_;
  std::size_t device_index_;
  bool weigh_;
  shape dims_;
  dtype type_;
  storage& out_;
  arena host_{make_host_memory_source()};
};

template <class T>
bool all_finite(const tensor& t) {
  for (auto v : t.values<T>())
    if (!std::isfinite(v))
      return false;
  return true;
}

tensor in_plain_layout(const tensor& t) {
  arena host{make_host_memory_source()};
  auto plain = tensor::make(host, t.dims(), t.type());
  t.format()->to_plain(t, plain, nullptr);
  return plain;
}

bool all_finite(const tensor& t) {
  if (!t.is_plain())
    return all_finite(in_plain_layout(t));
  switch (t.type()) {
  case dtype::float32: return all_finite<float>(t);
  case dtype::float64: return all_finite<double>(t);
  default: return true;
  }
}

} // namespace

std::unique_ptr<op_task>
make_computation_task(const graph::op_desc& desc, device& on,
                      std::size_t device_index, std::unique_ptr<kernel> code,
                      const std::vector<task_argument>& inputs,
                      const std::vector<task_argument>& outputs,
                      std::uint32_t slots, bool check_nan) {
  return std::make_unique<computation_task>(
    desc, on, device_index, std::move(code), inputs, outputs, slots, check_nan);
}

std::unique_ptr<op_task> make_scale_loss_grad_task(const graph::op_desc& desc,
                                                   device& on,
                                                   std::size_t device_index,
                                                   storage& out) {
  return std::make_unique<scale_loss_grad_task>(desc, on, device_index, out);
}

void require_finite(const variable& value, const std::string& name) {
  const tensor* t = nullptr;
  if (value.is_tensor())
    t = &value.as_tensor();
  else if (value.is_rows())
    t = &value.as_rows().values;
  if (t && *t && !all_finite(*t))
    throw error(errc::not_finite, "a value is not finite", {.variable = name});
}

} // namespace troupe::actors

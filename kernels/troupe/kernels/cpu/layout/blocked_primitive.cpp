// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/layout/blocked_primitive.hpp>

#include <troupe/kernels/cpu/layout/layout_traffic.hpp>
#include <troupe/kernels/cpu/library/single_threaded.hpp>

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace troupe::cpu {

namespace {

constexpr std::size_t alignment = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

tensor scratch_of(const kernel_context& ctx, std::size_t bytes) {
  return ctx.scratch(static_cast<std::int64_t>(bytes / sizeof(float) + 1));
}

dnnl::memory without_data(const dnnl::memory::desc& desc) {
  return {desc, cpu_engine(), nullptr};
}

} // namespace

const dnnl::engine& cpu_engine() {
  // Never destroyed: an executor in static storage reads it at exit.
  static const auto& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

blocked_primitive::port::port(const operand& o, bool output)
  : argument(o.argument), converts(o.outer != o.inner), is_output(output),
    outer(without_data(o.outer)), inner(without_data(o.inner)) {
  if (!converts)
    return;
  const auto& from = is_output ? o.inner : o.outer;
  const auto& to = is_output ? o.outer : o.inner;
  copy = filter_copy::between(from, to);
  pack = filter_pack::between(from, to);
  if (!reorders())
    return;
  const dnnl::reorder::primitive_desc desc(cpu_engine(), from, cpu_engine(), to,
                                           user_scratchpad());
  reorder = dnnl::reorder(desc);
  reorder_scratchpad = without_data(desc.scratchpad_desc());
}

void blocked_primitive::port::convert(dnnl::stream& queue,
                                      std::byte* scratchpad) {
  if (!converts)
    return;
  auto& from = is_output ? inner : outer;
  auto& to = is_output ? outer : inner;
  if (copy) {
    queue.wait(); // the primitive must have written what is copied
    copy->run(static_cast<const float*>(from.get_data_handle()),
              static_cast<float*>(to.get_data_handle()));
  } else if (pack) {
    pack->run(static_cast<const float*>(from.get_data_handle()),
              to.get_data_handle());
  } else {
    reorder_scratchpad.set_data_handle(scratchpad);
    reorder.execute(queue, {{DNNL_ARG_FROM, from},
                            {DNNL_ARG_TO, to},
                            {DNNL_ARG_SCRATCHPAD, reorder_scratchpad}});
  }
  add_layout_traffic(outer.get_desc().get_size() + inner.get_desc().get_size());
}

std::size_t blocked_primitive::port::inner_bytes() const {
  return converts ? aligned(inner.get_desc().get_size()) : 0;
}

blocked_primitive::blocked_primitive(dnnl::primitive primitive,
                                     const dnnl::memory::desc& scratchpad,
                                     const std::array<operand, 2>& inputs,
                                     const operand& output)
  : primitive_(std::move(primitive)), inputs_{port(inputs[0], false),
                                              port(inputs[1], false)},
    output_(output, true), scratchpad_(without_data(scratchpad)),
    queue_(cpu_engine()) {
  std::size_t shared = scratchpad.get_size();
  for (const port* p : {&inputs_[0], &inputs_[1], &output_}) {
    scratch_bytes_ += p->inner_bytes();
    if (p->reorders())
      shared = std::max(shared, p->reorder_scratchpad.get_desc().get_size());
  }
  scratch_bytes_ += aligned(shared);
}

void blocked_primitive::bind(port& p, void* data, std::byte*& scratch) {
  p.outer.set_data_handle(data);
  if (!p.converts)
    return;
  p.inner.set_data_handle(scratch);
  scratch += p.inner_bytes();
}

void blocked_primitive::run(const kernel_context& ctx, const void* a,
                            const void* b, void* out) {
  ensure_single_threaded();
  tensor scratch = scratch_of(ctx, scratch_bytes_);
  std::byte* next = scratch.raw();
  bind(inputs_[0], const_cast<void*>(a), next);
  bind(inputs_[1], const_cast<void*>(b), next);
  bind(output_, out, next);
  for (auto& input : inputs_)
    input.convert(queue_, next);
  execute(next);
}

const filter_pack* blocked_primitive::pack() const noexcept {
  const auto& pack = inputs_[1].pack;
  return pack ? &*pack : nullptr;
}

void blocked_primitive::run_packed(const kernel_context& ctx, const void* a,
                                   const void* packed, void* out) {
  ensure_single_threaded();
  tensor scratch = scratch_of(ctx, scratch_bytes_ - inputs_[1].inner_bytes());
  std::byte* next = scratch.raw();
  bind(inputs_[0], const_cast<void*>(a), next);
  inputs_[1].inner.set_data_handle(const_cast<void*>(packed));
  bind(output_, out, next);
  inputs_[0].convert(queue_, next);
  execute(next);
}

void blocked_primitive::execute(std::byte* scratchpad) {
  scratchpad_.set_data_handle(scratchpad);
  const auto used = [](const port& p) {
    return p.converts ? p.inner : p.outer;
  };
  primitive_.execute(queue_, {{inputs_[0].argument, used(inputs_[0])},
                              {inputs_[1].argument, used(inputs_[1])},
                              {output_.argument, used(output_)},
                              {DNNL_ARG_SCRATCHPAD, scratchpad_}});
  output_.convert(queue_, scratchpad);
  queue_.wait();
}

} // namespace troupe::cpu

// SPDX-License-Identifier: Apache-2.0
#include <kernels/cpu/blocked_images.hpp>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace troupe::test {

namespace {

class blocked_inputs final : public kernel {
public:
  blocked_inputs(std::unique_ptr<kernel> code, const cpu::image_format& format,
                 bool rounds)
    : code_(std::move(code)), format_(format), rounds_(rounds) {}

  void run(kernel_context& ctx) override {
    std::deque<variable> values;
    std::vector<variable*> inputs;
    for (auto* each : ctx.inputs().variables()) {
      if (each && each->is_tensor() && !is_output(ctx, each)) {
        values.emplace_back().set(laid(each->as_tensor(), ctx.on()));
        each = &values.back();
      }
      inputs.push_back(each);
    }
    kernel_context blocked(ctx.on(), ctx.queue(), ctx.attributes(),
                           {ctx.inputs().slots(), inputs.data()}, ctx.outputs(),
                           ctx.step());
    code_->run(blocked);
  }

private:
  tensor laid(const tensor& value, device& on) const {
    if (!rounds_)
      return in_blocks(value, format_, on.memory());
    const tensor rounded =
      in_blocks(value, {format_.block, precision::bfloat16}, on.memory());
    return in_blocks(on.to_host(rounded, on.memory()), format_, on.memory());
  }

  static bool is_output(const kernel_context& ctx, const variable* var) {
    const auto outputs = ctx.outputs().variables();
    return std::ranges::find(outputs, var) != outputs.end();
  }

  std::unique_ptr<kernel> code_;
  cpu::image_format format_;
  bool rounds_;
};

kernel_table with_inputs(kernel_table table, const cpu::image_format& format,
                         bool rounds) {
  kernel_table result;
  const auto shared = std::make_shared<const kernel_table>(std::move(table));
  for (const auto& type : shared->op_types(device_kind::cpu))
    result.add(type, device_kind::cpu,
               [=](const attribute_map& attributes) -> std::unique_ptr<kernel> {
                 return std::make_unique<blocked_inputs>(
                   shared->make(type, device_kind::cpu, attributes), format,
                   rounds);
               });
  return result;
}

} // namespace

tensor in_blocks(const tensor& plain, const cpu::image_format& format,
                 arena& memory) {
  const shape& dims = plain.dims();
  if (!plain.is_plain() || plain.type() != dtype::float32
      || !cpu::fits_blocks(dims, format.block))
    return plain;
  const auto layout = cpu::channel_blocks(dims, format);
  tensor result(dims, plain.type(), memory.allocate(layout->bytes()), layout);
  const std::int64_t pixels = dims.numel(2, 4);
  const auto from = plain.values<float>();
  for (std::int64_t i = 0; i < plain.numel(); ++i) {
    const std::int64_t plane = i / pixels;
    const std::int64_t to =
      (plane / format.block * pixels + i % pixels) * format.block
      + plane % format.block;
    const float value = from[static_cast<std::size_t>(i)];
    if (format.rounded())
      reinterpret_cast<bfloat16*>(result.raw())[to] = bfloat16(value);
    else
      result.data<float>()[to] = value;
  }
  return result;
}

kernel_table with_blocked_inputs(kernel_table table,
                                 const cpu::image_format& format) {
  return with_inputs(std::move(table), format, false);
}

kernel_table with_rounded_inputs(kernel_table table,
                                 const cpu::image_format& format) {
  return with_inputs(std::move(table), format, true);
}

} // namespace troupe::test

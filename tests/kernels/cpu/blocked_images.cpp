// SPDX-License-Identifier: Apache-2.0
#include "blocked_images.hpp"

#include <troupe/kernels/cpu/channel_blocks.hpp>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace troupe::test {

namespace {

class blocked_inputs final : public kernel {
public:
  blocked_inputs(std::unique_ptr<kernel> code, std::int64_t block)
    : code_(std::move(code)), block_(block) {}

  void run(kernel_context& ctx) override {
    std::deque<variable> values;
    std::vector<op_argument> inputs;
    for (op_argument each : ctx.inputs()) {
      if (each.var && each.var->is_tensor() && !is_output(ctx, each.var)) {
        values.emplace_back().set(
          in_blocks(each.var->as_tensor(), block_, ctx.on().memory()));
        each.var = &values.back();
      }
      inputs.push_back(each);
    }
    kernel_context blocked(ctx.on(), ctx.queue(), ctx.attributes(), inputs,
                           ctx.outputs(), ctx.step());
    code_->run(blocked);
  }

private:
  static bool is_output(const kernel_context& ctx, const variable* var) {
    return std::ranges::any_of(
      ctx.outputs(), [&](const op_argument& out) { return out.var == var; });
  }

  std::unique_ptr<kernel> code_;
  std::int64_t block_;
};

} // namespace

tensor in_blocks(const tensor& plain, std::int64_t block, arena& memory) {
  const shape& dims = plain.dims();
  if (!plain.is_plain() || plain.type() != dtype::float32
      || !cpu::fits_blocks(dims, block))
    return plain;
  tensor result(dims, plain.type(), memory.allocate(plain.bytes()),
                cpu::channel_blocks(dims, block));
  const std::int64_t pixels = dims.numel(2, 4);
  const auto from = plain.values<float>();
  for (std::int64_t i = 0; i < plain.numel(); ++i) {
    const std::int64_t plane = i / pixels;
    const std::int64_t to =
      (plane / block * pixels + i % pixels) * block + plane % block;
    result.data<float>()[to] = from[static_cast<std::size_t>(i)];
  }
  return result;
}

kernel_table with_blocked_inputs(kernel_table table, std::int64_t block) {
  kernel_table result;
  const auto shared = std::make_shared<const kernel_table>(std::move(table));
  for (const auto& type : shared->op_types(device_kind::cpu))
    result.add(type, device_kind::cpu,
               [=](const attribute_map& attributes) -> std::unique_ptr<kernel> {
                 return std::make_unique<blocked_inputs>(
                   shared->make(type, device_kind::cpu, attributes), block);
               });
  return result;
}

} // namespace troupe::test

// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/elementwise/binary.hpp>
#include <troupe/kernels/cpu/elementwise/elementwise_ops.hpp>
#include <troupe/kernels/cpu/elementwise/planned_broadcast.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/cpu/optimizer/merged_rows.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>

namespace troupe::cpu {

namespace {

template <class T>
void require_no_zero(const tensor& y) {
  const auto values = y.values<T>();
  if (std::find(values.begin(), values.end(), T(0)) != values.end())
    throw error(errc::invalid_argument, "division of an integer by zero in Y");
}

template <class Op, class... Ops>
constexpr bool is_one_of = (std::is_same_v<Op, Ops> || ...);

template <class Op>
constexpr bool divides = is_one_of<Op, elementwise::divide, elementwise::modulo,
                                   elementwise::floor_divide>;

template <class Op>
class elementwise_kernel final : public planned_broadcast {
public:
  using planned_broadcast::planned_broadcast;
  void run(kernel_context& ctx) override {
    if constexpr (std::is_same_v<Op, elementwise::multiply>)
      if (ctx.input_variable("X").is_rows())
        return ctx.output_variable("Out").set(
          multiply_rows("X", ctx.input_variable("X").as_rows(),
                        scalar_input(ctx, "Y"), ctx.on().memory()));
    if constexpr (std::is_same_v<Op, elementwise::add>)
      if (add_in_blocks(ctx))
        return;
    run_plain(ctx);
  }

private:
  void run_plain(kernel_context& ctx) {
    const tensor x = ctx.input("X");
    const tensor y = ctx.input("Y");
    require_type("Y", y.type(), x.type());
    const broadcast_plan& p = plan(x.dims(), y.dims());
    for_number_type("X", x.type(), [&]<class T>(T) {
      if constexpr (divides<Op> && std::integral<T>)
        require_no_zero<T>(y);
      tensor out = ctx.output("Out", p.out, x.type());
      auto* to = out.data<T>();
      in_broadcast_parts(
        ctx, p, [&](const broadcast_plan& part, const broadcast_offsets& at) {
          apply_broadcast<Op>(part, to + at.out, x.data<T>() + at.x,
                              y.data<T>() + at.y);
        });
    });
  }

  // Handles two images in the same blocks, or one and a value per channel.
  bool add_in_blocks(kernel_context& ctx) const {
    const tensor x = stored_input(ctx, "X");
    if (x.is_plain())
      return false;
    const auto y = stored_input(ctx, "Y");
    require_type("Y", y.type(), x.type());
    if (!y.is_plain() && y.format()->equals(*x.format())) {
      tensor out = output_like(ctx, "Out", x);
      float* to = out.data<float>();
      in_ranges(ctx, x.numel(), [&](std::int64_t first, std::int64_t n) {
        run_simd<binary_loop<Op, true, true>>(
          to + first, x.data<float>() + first, y.data<float>() + first, n);
      });
      return true;
    }
    if (!is_per_channel(x.dims(), y.dims(), axis()))
      return false;
    tensor out = output_like(ctx, "Out", x);
    add_to_channels(out.data<float>(), x.data<float>(), y.data<float>(),
                    x.dims(), block_of(x));
    return true;
  }
};

struct entry {
  const char* op_type;
  kernel_factory make;
};

template <class Op>
constexpr entry entry_of(const char* op_type) {
  return {op_type, [](const attribute_map& attributes) {
            return std::unique_ptr<kernel>(
              std::make_unique<elementwise_kernel<Op>>(attributes));
          }};
}

constexpr entry entries[] = {
  entry_of<elementwise::add>("elementwise_add"),
  entry_of<elementwise::add>("grad_add"),
  entry_of<elementwise::subtract>("elementwise_sub"),
  entry_of<elementwise::multiply>("elementwise_mul"),
  entry_of<elementwise::divide>("elementwise_div"),
  entry_of<elementwise::modulo>("elementwise_mod"),
  entry_of<elementwise::floor_divide>("elementwise_floordiv"),
  entry_of<elementwise::maximum>("elementwise_max"),
  entry_of<elementwise::minimum>("elementwise_min"),
  entry_of<elementwise::power>("elementwise_pow"),
};

} // namespace

void add_elementwise(kernel_table& table) {
  for (const auto& [op_type, make] : entries)
    table.add(op_type, device_kind::cpu, make);
}

} // namespace troupe::cpu

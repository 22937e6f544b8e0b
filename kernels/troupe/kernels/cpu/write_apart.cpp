// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/write_apart.hpp>

#include <algorithm>
#include <functional>
#include <vector>

namespace troupe::cpu {

namespace {

constexpr std::size_t few = 16;

/// Whether a variable is an input; sorted where an op has many of them.
class input_set {
public:
  explicit input_set(std::span<const op_argument> inputs) : inputs_(inputs) {
    if (inputs.size() <= few)
      return;
    sorted_.reserve(inputs.size());
    for (auto& in : inputs)
      sorted_.push_back(in.var);
    std::ranges::sort(sorted_, std::less<>{});
  }

  bool contains(const variable* var) const {
    if (inputs_.size() > few)
      return std::ranges::binary_search(sorted_, var, std::less<>{});
    return std::ranges::find(inputs_, var, &op_argument::var) != inputs_.end();
  }

private:
  std::span<const op_argument> inputs_;
  std::vector<const variable*> sorted_;
};

class apart_kernel final : public kernel {
public:
  explicit apart_kernel(kernel_function function) : run_(function) {}

  void run(kernel_context& ctx) override {
    const input_set inputs(ctx.inputs());
    for (auto& out : ctx.outputs())
      if (out.var && out.var->is_tensor() && inputs.contains(out.var))
        out.var->as_tensor().share(); // so that nobody writes it in place
    run_(ctx);
  }

private:
  kernel_function run_;
};

} // namespace

std::unique_ptr<kernel> write_apart(kernel_function function) {
  return std::make_unique<apart_kernel>(function);
}

} // namespace troupe::cpu

// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/write_apart.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

namespace troupe {

namespace {

constexpr std::size_t few = 16;

/// Whether a variable is an input. Large sets are sorted for the search.
class input_set {
public:
  explicit input_set(std::span<variable* const> inputs) : inputs_(inputs) {
    if (inputs.size() <= few)
      return;
    sorted_.assign(inputs.begin(), inputs.end());
    std::ranges::sort(sorted_, std::less<>{});
  }

  bool contains(const variable* var) const {
    if (inputs_.size() > few)
      return std::ranges::binary_search(sorted_, var, std::less<>{});
    return std::ranges::find(inputs_, var) != inputs_.end();
  }

private:
  std::span<variable* const> inputs_;
  std::vector<const variable*> sorted_;
};

class apart_kernel final : public kernel {
public:
  explicit apart_kernel(kernel_function function) : run_(function) {}

  void run(kernel_context& ctx) override {
    const input_set inputs(ctx.inputs().variables());
    const auto is_read = [&](const variable* out) {
      return out && inputs.contains(out);
    };
    if (std::ranges::any_of(ctx.outputs().variables(), is_read))
      run_apart(ctx, is_read);
    else
      run_(ctx);
  }

private:
  /// Outputs that are also inputs get variables of their own: the function may
  /// read an input again after it has written an output.
  template <class IsRead>
  void run_apart(const kernel_context& ctx, IsRead is_read) const {
    const auto targets = ctx.outputs().variables();
    std::vector<variable*> outputs(targets.begin(), targets.end());
    std::deque<variable> written;
    for (auto*& out : outputs)
      if (is_read(out))
        out = &written.emplace_back();
    kernel_context inner{ctx.on(),
                         ctx.queue(),
                         ctx.attributes(),
                         ctx.inputs(),
                         {ctx.outputs().slots(), outputs.data()},
                         ctx.step()};
    run_(inner);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i] != targets[i])
        *targets[i] = std::move(*outputs[i]);
  }

  kernel_function run_;
};

} // namespace

std::unique_ptr<kernel> write_apart(kernel_function function) {
  return std::make_unique<apart_kernel>(function);
}

} // namespace troupe

// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tasks/output_check.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/base/error.hpp>
#include <troupe/graph/argument.hpp>
#include <troupe/graph/sub_blocks.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

namespace {

bool is_built_in(const std::string& op_type) {
  static const auto built_in = cpu_backend().kernels({});
  return built_in.has(op_type, device_kind::cpu)
         || graph::is_control_flow(op_type);
}

/// True if the number of samples in feeds that are split over devices is fixed.
bool has_fixed_batch(const graph::program& p) {
  const auto feeds = graph::feed_names(p);
  return !feeds.empty() && std::ranges::all_of(feeds, [&](auto& name) {
    const auto* declared = p.main().find_var(name);
    return declared && declared->dims.rank() > 0 && declared->dims[0] >= 0;
  });
}

/// What is declared of an output with extents.
struct declared_output {
  shape dims;
  dtype type = dtype::float32;
};

/// What is declared of the op's outputs, in the order of its arguments. Of
/// those without extents, nothing.
std::vector<std::optional<declared_output>>
declared_outputs(const graph::program& p, const graph::op_desc& op) {
  std::vector<std::optional<declared_output>> outputs;
  for (auto& slot : op.outputs)
    for (auto& name : slot.arguments) {
      auto& output = outputs.emplace_back();
      const auto* declared = p.main().find_var(name);
      if (declared && declared->kind == graph::var_kind::dense
          && declared->dims.rank() > 0)
        output = {declared->dims, declared->type};
    }
  return outputs;
}

bool fits(const shape& made, const shape& declared, bool by_rank) {
  if (made.rank() != declared.rank())
    return false;
  for (std::size_t i = 0; i < made.rank() && !by_rank; ++i)
    if (declared[i] >= 0 && made[i] != declared[i])
      return false;
  return true;
}

class checked_kernel final : public kernel {
public:
  checked_kernel(std::unique_ptr<kernel> code, std::string op_type,
                 std::vector<std::optional<declared_output>> declared,
                 bool batch_is_fixed)
    : code_(std::move(code)), op_type_(std::move(op_type)),
      declared_(std::move(declared)), batch_is_fixed_(batch_is_fixed) {}

  void run(kernel_context& ctx) override {
    code_->run(ctx);
    const auto by_rank = batch_is_fixed_ && ctx.step().replicas > 1;
    auto declared = declared_.begin();
    ctx.outputs().for_each(
      [&](const op_argument& out) { check(out, *declared++, by_rank); });
  }

private:
  void check(const op_argument& out,
             const std::optional<declared_output>& declared,
             bool by_rank) const {
    if (!declared || !out.var || !out.var->is_tensor())
      return;
    const auto& value = std::as_const(*out.var).as_tensor();
    if (!value)
      return;
    if (!fits(value.dims(), declared->dims, by_rank))
      blame(errc::shape_mismatch, out, "shape " + to_string(value.dims()),
            to_string(declared->dims));
    if (value.type() != declared->type)
      blame(errc::dtype_mismatch, out,
            "dtype " + std::string{to_string(value.type())},
            std::string{to_string(declared->type)});
  }

  [[noreturn]] void blame(errc code, const op_argument& out,
                          const std::string& made,
                          const std::string& declared) const {
    const std::string name{out.name};
    throw error(code,
                "op " + op_type_ + " wrote output " + std::string{out.slot}
                  + " '" + name + "' with " + made
                  + ", its shape inference declared " + declared,
                {.op_type = op_type_, .variable = name});
  }

  std::unique_ptr<kernel> code_;
  std::string op_type_;
  std::vector<std::optional<declared_output>> declared_;
  bool batch_is_fixed_;
};

} // namespace

output_check::output_check(const graph::program& p) : program_(p) {}

bool output_check::fixes_batch() {
  if (!batch_is_fixed_)
    batch_is_fixed_ = has_fixed_batch(program_);
  return *batch_is_fixed_;
}

std::unique_ptr<kernel> output_check::of(std::unique_ptr<kernel> code,
                                         const graph::op_desc& op) {
  if (is_built_in(op.type))
    return code;
  auto declared = declared_outputs(program_, op);
  if (std::ranges::none_of(declared, [](auto& d) { return d.has_value(); }))
    return code; // anything is allowed
  return std::make_unique<checked_kernel>(std::move(code), op.type,
                                          std::move(declared), fixes_batch());
}

} // namespace troupe::actors

// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tasks/block_runner.hpp>

#include <troupe/actors/tasks/control_flow.hpp>
#include <troupe/base/error.hpp>
#include <troupe/graph/argument.hpp>
#include <troupe/graph/sub_blocks.hpp>

#include <new>
#include <utility>

namespace troupe::actors {

namespace {

std::vector<variable*> bound_to(const std::vector<op_slot>& slots,
                                const block_scope& variables) {
  std::vector<variable*> bound;
  for (auto& slot : slots)
    for (auto& name : slot.arguments)
      bound.push_back(graph::names_variable(name) ? &variables.find(name)
                                                  : nullptr);
  return bound;
}

} // namespace

outer_arguments::outer_arguments(const kernel_context& ctx) {
  by_name_.reserve(ctx.outputs().size() + ctx.inputs().size());
  for (const auto& arguments : {ctx.outputs(), ctx.inputs()})
    arguments.for_each([&](const op_argument& arg) {
      if (arg.var)
        by_name_.emplace(arg.name, arg.var);
    });
}

variable* outer_arguments::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

variable& block_scope::find(std::string_view name) const {
  if (auto* here = inside_.find(name))
    return *here;
  if (locals_.contains(name))
    return inside_.var(name);
  if (auto* outer = outside_.find(name))
    return *outer;
  throw error(errc::graph_invalid,
              "a sub-block uses a variable that no block declares",
              {.variable = std::string{name}});
}

block_runner::block_runner(const graph::program& p, std::int32_t block,
                           const kernel_table& kernels, device_kind kind)
  : block_(block), locals_(graph::local_names(p, block)) {
  for (auto& op : p.blocks[static_cast<std::size_t>(block)].ops)
    ops_.push_back(
      {op, make_op_kernel(p, op, kernels, kind), lod_rule_of(op.type)});
}

void block_runner::run(const block_scope& variables, kernel_context& ctx) {
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    if (ctx.step().stopped())
      throw error(errc::cancelled,
                  "stopped between ops of block " + std::to_string(block_));
    auto& op = ops_[i];
    const auto where = [&]() -> error_context {
      return {.op = op.desc.type + "#" + std::to_string(i) + " of block "
                    + std::to_string(block_),
              .op_type = op.desc.type,
              .call_stack = op.desc.call_stack()};
    };
    try {
      run_op(op, variables, ctx);
    } catch (const error& e) {
      throw e.with_context(where());
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& e) {
      throw error(errc::kernel_failure, e.what(), where());
    }
  }
}

void block_runner::run_op(compiled_op& op, const block_scope& variables,
                          kernel_context& ctx) {
  const auto inputs = bound_to(op.desc.inputs, variables);
  const auto outputs = bound_to(op.desc.outputs, variables);
  kernel_context inner{ctx.on(),
                       ctx.queue(),
                       op.desc.attributes,
                       {op.desc.inputs, inputs.data()},
                       {op.desc.outputs, outputs.data()},
                       ctx.step()};
  run_kernel(*op.code, op.rule, inner);
}

} // namespace troupe::actors

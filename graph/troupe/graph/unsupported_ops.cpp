// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/unsupported_ops.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/sub_blocks.hpp>

#include <string>

namespace troupe::graph {

namespace {

/// Control flow reads conditions and arrays on the host, as all CPU kernels do.
bool needs_no_kernel(const op_desc& op, device_id on) {
  return op.type == "feed" || op.type == "fetch"
         || (is_control_flow(op.type) && has_host_memory(on.kind));
}

/// What a device lacks of an op: "relu", "relu of float64", or nothing.
std::string missing_of(const block& b, const op_desc& op,
                       const kernel_table& kernels, device_id on) {
  if (needs_no_kernel(op, on))
    return {};
  if (!kernels.has(op.type, on.kind))
    return op.type;
  std::string found;
  const auto look = [&](const auto& slots) {
    for (const auto& [slot, names] : slots)
      for (const auto& name : names)
        if (const auto* const var = b.find_var(name);
            var && !kernels.takes(op.type, on.kind, slot, var->type))
          found = op.type + " of " + std::string(to_string(var->type));
  };
  look(op.inputs);
  look(op.outputs);
  return found;
}

} // namespace

op_counts unsupported_ops(const program& p, const kernel_table& kernels,
                          std::span<const device_id> devices) {
  op_counts found;
  for (const block& b : p.blocks)
    for (const op_desc& op : b.ops)
      for (device_id device : devices)
        if (const auto what = missing_of(b, op, kernels, device);
            !what.empty()) {
          ++found[what];
          break;
        }
  return found;
}

std::string to_text(const op_counts& counts) {
  std::string text;
  for (const auto& [type, count] : counts)
    text +=
      (text.empty() ? "" : ", ") + type + " (" + std::to_string(count) + ")";
  return text;
}

void require_kernels(const program& p, const kernel_table& kernels,
                     std::span<const device_id> devices) {
  const op_counts found = unsupported_ops(p, kernels, devices);
  if (!found.empty())
    throw error(errc::unsupported_op,
                "no kernels for these ops: " + to_text(found));
}

} // namespace troupe::graph

// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/unsupported_ops.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/sub_blocks.hpp>

#include <algorithm>

namespace troupe::graph {

namespace {

/// Control flow reads conditions and arrays on the host, as all CPU kernels do.
bool needs_no_kernel(const op_desc& op, device_id on) {
  return op.type == "feed" || op.type == "fetch"
         || (is_control_flow(op.type) && has_host_memory(on.kind));
}

} // namespace

op_counts unsupported_ops(const program& p, const kernel_table& kernels,
                          std::span<const device_id> devices) {
  op_counts found;
  for (const block& b : p.blocks)
    for (const op_desc& op : b.ops)
      if (!std::ranges::all_of(devices, [&](device_id device) {
            return needs_no_kernel(op, device)
                   || kernels.has(op.type, device.kind);
          }))
        ++found[op.type];
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

// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/own_ops/own_op.hpp>

#include <troupe/base/error.hpp>

#include <string>

namespace troupe::graph {

namespace {

[[noreturn]] void refuse_op(const std::string& type, const std::string& why) {
  throw error(errc::invalid_argument, "the op '" + type + "' " + why,
              {.op_type = type});
}

bool has_gradient(const gradient_rule& rule) {
  return rule.make || !rule.groups.empty();
}

void require_whole(const own_op& op, const std::string& type) {
  if (type.empty())
    refuse_op(type, "has no type");
  if (!op.schema.infer)
    refuse_op(type, "has no shapes");
  if (!op.run)
    refuse_op(type, "has no kernel");
  if (has_gradient(op.schema.gradient) && !op.gradient)
    refuse_op(type, "has a gradient rule, but no kernel for the gradient");
  if (!has_gradient(op.schema.gradient) && op.gradient)
    refuse_op(type, "has a kernel for the gradient, but no gradient rule");
}

} // namespace

void add_op(op_schema_table& schemas, kernel_table& kernels, const own_op& op) {
  const std::string type{op.schema.type};
  require_whole(op, type);
  if (schemas.contains(type) || kernels.has(type, op.kind))
    refuse_op(type, "is there already");
  if (op.gradient && kernels.has(type + "_grad", op.kind))
    refuse_op(type + "_grad", "is there already");
  schemas.emplace(type, op.schema);
  kernels.add(type, op.kind, op.run);
  if (op.gradient)
    kernels.add(type + "_grad", op.kind, op.gradient);
}

} // namespace troupe::graph

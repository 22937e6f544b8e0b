// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/network.hpp>

#include <troupe/base/error.hpp>

#include <utility>
#include <vector>

namespace troupe::graph {

const var_desc& variable_ref::desc() const {
  return net_->main.main().var(name_);
}

variable_ref network::data(std::string name, const shape& dims, dtype type) {
  check_free(name);
  var_desc desc;
  desc.name = name;
  desc.dims = dims;
  desc.type = type;
  desc.stop_gradient = true;
  desc.need_check_feed = true;
  main.main().add_var(std::move(desc));
  return {*this, std::move(name)};
}

std::string network::unique_name(std::string_view prefix) {
  auto& count = counts_[std::string{prefix}];
  std::string name;
  do
    name = std::string{prefix} + "_" + std::to_string(count++);
  while (main.main().find_var(name));
  return name;
}

variable_ref network::temporary(std::string name) {
  check_free(name);
  var_desc desc;
  desc.name = name;
  main.main().add_var(std::move(desc));
  return {*this, std::move(name)};
}

variable_ref network::parameter(std::string name, const shape& dims,
                                const initializer::any& how, bool trainable,
                                std::source_location at) {
  if (auto shared = main.main().find_var(name)) {
    if (!shared->is_parameter)
      check_free(name);
    if (shared->dims != dims)
      throw error{errc::shape_mismatch, "parameter '" + name + "' of shape "
                                          + to_string(shared->dims)
                                          + " cannot be shared where shape "
                                          + to_string(dims) + " is needed"};
    return {*this, std::move(name)};
  }
  var_desc desc;
  desc.name = std::move(name);
  desc.dims = dims;
  desc.is_parameter = true;
  desc.stop_gradient = !trainable;
  return persistable(std::move(desc), how, at);
}

variable_ref network::state(std::string name, const shape& dims,
                            const initializer::any& how,
                            std::source_location at) {
  check_free(name);
  var_desc desc;
  desc.name = std::move(name);
  desc.dims = dims;
  desc.stop_gradient = true;
  return persistable(std::move(desc), how, at);
}

variable_ref network::persistable(var_desc desc, const initializer::any& how,
                                  std::source_location at) {
  desc.persistable = true;
  auto op = initializer::make_op(how, desc.name, desc.dims, desc.type);
  auto name = desc.name;
  startup.main().add_var(desc);
  main.main().add_var(std::move(desc));
  append_startup(std::move(op), at);
  return {*this, std::move(name)};
}

void network::append(op_desc op, std::source_location at) {
  append_to(main, std::move(op), at);
}

void network::append_startup(op_desc op, std::source_location at) {
  append_to(startup, std::move(op), at);
}

void network::append_to(program& p, op_desc op, std::source_location at) {
  if (!op.attributes.has("op_role"))
    op.attributes.set("op_role", std::int32_t{role_forward});
  op.attributes.set("op_callstack", std::vector<std::string>{call_site(at)});
  infer_shapes(op, p.main(), schemas_);
  p.main().ops.push_back(std::move(op));
}

void network::check_free(const std::string& name) const {
  if (!main.main().find_var(name))
    return;
  error_context where;
  where.variable = name;
  throw error{errc::invalid_argument,
              "the network has a variable '" + name + "' already",
              std::move(where)};
}

std::string call_site(std::source_location at) {
  std::string_view file = at.file_name();
  file.remove_prefix(file.find_last_of("/\\") + 1);
  return std::string{file} + ":" + std::to_string(at.line());
}

} // namespace troupe::graph

// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>

#include <troupe/base/quoted_name.hpp>

#include <utility>

namespace troupe {

namespace {

std::string describe(const std::string& message, const error_context& where) {
  std::string text;
  auto add = [&text](std::string_view label, const std::string& value) {
    if (value.empty())
      return;
    text += text.empty() ? " (" : ", ";
    text += label;
    text += one_line(value);
  };
  add("op ", where.op);
  if (where.op_type != where.op)
    add("type ", where.op_type);
  add("variable ", where.variable);
  add("device ", where.device);
  if (where.step)
    add("step ", std::to_string(*where.step));
  if (!where.call_stack.empty())
    add("made at ", where.call_stack.front());
  if (!text.empty())
    text += ")";
  return message + text;
}

} // namespace

std::string_view to_string(errc code) noexcept {
  switch (code) {
  case errc::invalid_argument: return "invalid_argument";
  case errc::not_found: return "not_found";
  case errc::shape_mismatch: return "shape_mismatch";
  case errc::dtype_mismatch: return "dtype_mismatch";
  case errc::bad_file: return "bad_file";
  case errc::unsupported_op: return "unsupported_op";
  case errc::graph_invalid: return "graph_invalid";
  case errc::out_of_range: return "out_of_range";
  case errc::not_finite: return "not_finite";
  case errc::io_failure: return "io_failure";
  case errc::out_of_memory: return "out_of_memory";
  case errc::kernel_failure: return "kernel_failure";
  case errc::peer_failure: return "peer_failure";
  case errc::order_mismatch: return "order_mismatch";
  case errc::cancelled: return "cancelled";
  case errc::busy: return "busy";
  }
  return "unknown";
}

error::error(errc code, const std::string& message, error_context where)
  : std::runtime_error(describe(one_line(message), where)), code_(code),
    message_(one_line(message)), where_(std::move(where)) {}

error error::with_context(const error_context& where) const {
  auto merged = where_;
  auto fill = [](std::string& field, const std::string& value) {
    if (field.empty())
      field = value;
  };
  fill(merged.op, where.op);
  fill(merged.op_type, where.op_type);
  fill(merged.variable, where.variable);
  fill(merged.device, where.device);
  if (!merged.step)
    merged.step = where.step;
  if (merged.call_stack.empty())
    merged.call_stack = where.call_stack;
  return error{code_, message_, std::move(merged)};
}

} // namespace troupe

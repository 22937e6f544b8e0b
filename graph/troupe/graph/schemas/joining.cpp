// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

#include <algorithm>
#include <utility>

namespace troupe::graph::schemas {

namespace {

/// If the axis is an input, only the rank of the result is known.
bool has_dynamic_axis(const shape_inference& s) {
  return s.has_input("AxisTensor");
}

void infer_concat(shape_inference& s) {
  auto out = s.dims("X");
  if (has_dynamic_axis(s))
    return s.output("Out", unknown_extents(out.rank()), s.type("X"));
  const auto axis =
    s.axis("axis", s.attributes().get_int("axis", 0), out.rank());
  for (std::size_t i = 1; i < s.num_inputs("X"); ++i) {
    auto other = s.dims("X", i);
    const auto& first = s.dims("X");
    const auto extent = other.rank() == out.rank() ? other[axis] : 0;
    if (other.rank() == out.rank())
      other[axis] = first[axis];
    s.check(fits(other, first), "X",
            "of the first one's shape " + to_string(first)
              + " except along axis " + std::to_string(axis),
            i);
    out[axis] = out[axis] < 0 || extent < 0 ? -1 : out[axis] + extent;
  }
  s.output("Out", out, s.type("X"));
}

/// Extents of the parts: equal parts, or attribute `sections`, where one extent
/// can be -1.
std::vector<std::int64_t> part_extents(const shape_inference& s,
                                       std::int64_t whole) {
  const auto count = s.num_outputs("Out");
  auto sections = s.attributes().get_ints("sections", {});
  if (s.attributes().get_int("num", 0) > 0 || sections.empty()) {
    const auto n = static_cast<std::int64_t>(count);
    s.check(whole < 0 || whole % n == 0, "X",
            "divisible into " + std::to_string(n) + " equal parts");
    return std::vector<std::int64_t>(count, whole < 0 ? -1 : whole / n);
  }
  s.check_attribute(sections.size() == count, "sections",
                    "as many as variables in Out");
  auto rest = std::ranges::find(sections, -1);
  std::int64_t known = 0;
  for (auto extent : sections)
    known += extent < 0 ? 0 : extent;
  s.check(whole < 0
            || (rest == sections.end() ? known == whole : known <= whole),
          "X", "as long as the sections, " + std::to_string(known));
  if (rest != sections.end())
    *rest = whole < 0 ? -1 : whole - known;
  return sections;
}

void infer_split(shape_inference& s) {
  auto dims = s.dims("X");
  if (has_dynamic_axis(s) || s.has_input("SectionsTensorList")) {
    for (std::size_t i = 0; i < s.num_outputs("Out"); ++i)
      s.output("Out", unknown_extents(dims.rank()), s.type("X"), i);
    return;
  }
  const auto axis =
    s.axis("axis", s.attributes().get_int("axis", 0), dims.rank());
  const auto extents = part_extents(s, dims[axis]);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    dims[axis] = extents[i];
    s.output("Out", dims, s.type("X"), i);
  }
}

std::vector<op_desc> split_gradient(const gradient_context& context) {
  const auto& forward = context.forward;
  std::vector<std::string> parts;
  for (const auto& name : forward.output("Out"))
    parts.push_back(gradient_name(name));
  op_desc op;
  op.type = "concat";
  op.set_input("X", std::move(parts));
  if (const auto& axis = forward.input("AxisTensor"); !axis.empty())
    op.set_input("AxisTensor", axis);
  op.set_output("Out", {gradient_name(forward.only_input("X"))});
  op.attributes.set(
    "axis", static_cast<std::int32_t>(forward.attributes.get_int("axis", 0)));
  return {std::move(op)};
}

void infer_stack(shape_inference& s) {
  const auto& x = s.dims("X");
  const auto axis =
    s.axis("axis", s.attributes().get_int("axis", 0), x.rank() + 1);
  for (std::size_t i = 1; i < s.num_inputs("X"); ++i)
    s.check(s.dims("X", i).rank() == x.rank() && fits(s.dims("X", i), x), "X",
            "of the first one's shape " + to_string(x), i);
  std::vector<std::int64_t> out(x.begin(), x.end());
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis),
             static_cast<std::int64_t>(s.num_inputs("X")));
  s.output("Y", to_shape(out), s.type("X"));
}

void infer_parts(shape_inference& s, std::string_view slot) {
  const auto& x = s.dims("X");
  const auto axis = s.axis("axis", s.attributes().get_int("axis", 0), x.rank());
  const auto count = static_cast<std::int64_t>(s.num_outputs(slot));
  s.check(fits(x[axis], count), "X",
          "of extent " + std::to_string(count) + " along axis "
            + std::to_string(axis));
  std::vector<std::int64_t> out(x.begin(), x.end());
  out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
  for (std::size_t i = 0; i < s.num_outputs(slot); ++i)
    s.output(slot, to_shape(out), s.type("X"), i);
}

void infer_unstack(shape_inference& s) {
  infer_parts(s, "Y");
}

void infer_unbind(shape_inference& s) {
  infer_parts(s, "Out");
}

/// The gradient stacks the gradients of the parts.
std::vector<op_desc> unbind_gradient(const gradient_context& context) {
  const auto& forward = context.forward;
  op_desc op;
  op.type = "stack";
  std::vector<std::string> parts;
  for (const auto& name : forward.output("Out"))
    parts.push_back(gradient_name(name));
  op.set_input("X", std::move(parts));
  op.set_output("Y", {gradient_name(forward.only_input("X"))});
  op.attributes = forward.attributes;
  return {std::move(op)};
}

/// Paddle's layout of the fused tensor.
void infer_coalesce(shape_inference& s) {
  const auto& a = s.attributes();
  const auto wanted = a.get_int("align_size", -1);
  const auto alignment = wanted > 0 ? wanted : 4096;
  const auto size = static_cast<std::int64_t>(size_of(s.type("Input")));
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < s.num_inputs("Input"); ++i) {
    const auto& dims = s.dims("Input", i);
    s.output("Output", dims, s.type("Input", i), i);
    const auto bytes = product(dims, 0, dims.rank()) * size;
    elements += a.get_bool("use_align", true)
                  ? (bytes + alignment - 1) / alignment * alignment / size
                  : bytes / size;
  }
  s.output("FusedOutput", to_shape({elements}), s.type("Input"));
}

} // namespace

void add_joining(op_schema_table& table) {
  add(
    table,
    {{.type = "concat",
      .inputs = {{"X", slot_arity::many}, {"AxisTensor", slot_arity::optional}},
      .outputs = {{"Out"}},
      .infer = infer_concat,
      .gradient = {.groups = {{"X"}},
                   .reads = {"X", "AxisTensor"},
                   .outputs = {"Out"}}},
     {.type = "split",
      .inputs = {{"X"},
                 {"AxisTensor", slot_arity::optional},
                 {"SectionsTensorList", slot_arity::any}},
      .outputs = {{"Out", slot_arity::many}},
      .infer = infer_split,
      .gradient = {.groups = {{"X"}},
                   .reads = {},
                   .outputs = {"Out"},
                   .make = split_gradient}},
     {.type = "stack",
      .inputs = {{"X", slot_arity::many}},
      .outputs = {{"Y"}},
      .infer = infer_stack,
      .gradient = {.groups = {{"X"}}, .reads = {"X"}, .outputs = {"Y"}}},
     {.type = "unstack",
      .inputs = {{"X"}},
      .outputs = {{"Y", slot_arity::many}},
      .infer = infer_unstack,
      .gradient = {.groups = {{"X"}}, .reads = {}, .outputs = {"Y"}}},
     {.type = "unbind",
      .inputs = {{"X"}},
      .outputs = {{"Out", slot_arity::many}},
      .infer = infer_unbind,
      .gradient = {.groups = {{"X"}},
                   .reads = {},
                   .outputs = {"Out"},
                   .make = unbind_gradient}},
     {.type = "coalesce_tensor",
      .inputs = {{"Input", slot_arity::many}},
      .outputs = {{"Output", slot_arity::many}, {"FusedOutput"}},
      .infer = infer_coalesce}});
}

} // namespace troupe::graph::schemas

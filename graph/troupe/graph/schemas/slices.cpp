// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

#include <algorithm>
#include <cstdlib>

namespace troupe::graph::schemas {

namespace {

bool any_input(const shape_inference& s,
               std::initializer_list<std::string_view> slots) {
  return std::ranges::any_of(slots,
                             [&](auto slot) { return s.has_input(slot); });
}

/// Number of elements from start to end with the given step. Negative bounds
/// count from the end, and bounds are clamped. With a negative step, an end of
/// -1 is before the first element.
std::int64_t cut_extent(std::int64_t n, std::int64_t start, std::int64_t end,
                        std::int64_t step) {
  if (n < 0)
    return -1;
  const std::int64_t low = step > 0 ? 0 : -1;
  start = std::clamp(start < 0 ? start + n : start, low, low + n);
  if (step > 0)
    end = std::clamp<std::int64_t>(end < 0 ? end + n : end, 0, n);
  else if (end != -1)
    end = std::clamp<std::int64_t>(end < 0 ? end + n : end, 0, n);
  const auto length = step > 0 ? end - start : start - end;
  return length <= 0 ? 0 : (length - 1) / std::abs(step) + 1;
}

void cut(shape_inference& s, shape& dims, bool strided) {
  const auto& a = s.attributes();
  const auto axes = a.get_ints("axes", {});
  const bool dynamic =
    any_input(s, {"StartsTensor", "StartsTensorList", "EndsTensor",
                  "EndsTensorList", "StridesTensor", "StridesTensorList"});
  const auto starts = a.get_ints("starts", {});
  const auto ends = a.get_ints("ends", {});
  const auto steps = strided ? a.get_ints("strides", {})
                             : std::vector<std::int64_t>(axes.size(), 1);
  s.check_attribute(dynamic
                      || (axes.size() == starts.size()
                          && axes.size() == ends.size()
                          && axes.size() == steps.size()),
                    "axes", "as many as starts and ends");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    auto& extent = dims[s.axis("axes", axes[i], dims.rank())];
    s.check_attribute(dynamic || steps[i] != 0, "strides", "not 0");
    extent = dynamic ? -1 : cut_extent(extent, starts[i], ends[i], steps[i]);
  }
}

void infer_cut(shape_inference& s, bool strided) {
  auto dims = s.dims("Input");
  cut(s, dims, strided);
  std::vector<bool> dropped(dims.rank());
  for (auto drop : s.attributes().get_ints("decrease_axis", {}))
    dropped[s.axis("decrease_axis", drop, dims.rank())] = true;
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < dims.rank(); ++i)
    if (!dropped[i])
      kept.push_back(dims[i]);
  s.output("Out", to_shape(kept), s.type("Input"));
}

op_schema slice() {
  return {.type = "slice",
          .inputs = {{"Input"},
                     {"StartsTensor", slot_arity::optional},
                     {"EndsTensor", slot_arity::optional},
                     {"StartsTensorList", slot_arity::any},
                     {"EndsTensorList", slot_arity::any}},
          .outputs = {{"Out"}},
          .infer = [](shape_inference& s) { infer_cut(s, false); },
          .gradient = {.groups = {{"Input"}},
                       .reads = {"Input", "StartsTensor", "EndsTensor",
                                 "StartsTensorList", "EndsTensorList"},
                       .outputs = {"Out"}}};
}

op_schema strided_slice() {
  auto schema = slice();
  schema.type = "strided_slice";
  schema.infer = [](shape_inference& s) { infer_cut(s, true); };
  schema.inputs.push_back({"StridesTensor", slot_arity::optional});
  schema.inputs.push_back({"StridesTensorList", slot_arity::any});
  schema.gradient.reads.push_back("StridesTensor");
  schema.gradient.reads.push_back("StridesTensorList");
  return schema;
}

/// Copies x and sets x[starts:ends:steps] to a value.
op_schema set_value() {
  return {.type = "set_value",
          .inputs = {{"Input"},
                     {"ValueTensor", slot_arity::optional},
                     {"StartsTensorList", slot_arity::any},
                     {"EndsTensorList", slot_arity::any},
                     {"StepsTensorList", slot_arity::any}},
          .outputs = {{"Out"}},
          .infer =
            [](shape_inference& s) {
              s.output("Out", s.dims("Input"), s.type("Input"));
            },
          .gradient = {.groups = {{"Input"}, {"ValueTensor"}},
                       .reads = {"ValueTensor", "StartsTensorList",
                                 "EndsTensorList", "StepsTensorList"},
                       .outputs = {"Out"}}};
}

void infer_flip(shape_inference& s) {
  for (auto axis : s.attributes().get_ints("axis", {}))
    s.axis("axis", axis, s.dims("X").rank());
  same_as_x(s);
}

/// Flipping twice restores the input, so the gradient is another flip.
std::vector<op_desc> flip_gradient(const gradient_context& context) {
  const auto& forward = context.forward;
  op_desc op;
  op.type = "flip";
  op.set_input("X", {gradient_name(forward.only_output("Out"))});
  op.set_output("Out", {gradient_name(forward.only_input("X"))});
  op.attributes = forward.attributes;
  return {std::move(op)};
}

op_schema flip() {
  auto schema = plain_schema("flip", {"X"}, infer_flip);
  schema.gradient = {
    .groups = {{"X"}}, .reads = {}, .outputs = {"Out"}, .make = flip_gradient};
  return schema;
}

op_schema roll() {
  auto schema = plain_schema("roll", {"X"}, infer_flip);
  schema.inputs.push_back({"ShiftsTensor", slot_arity::optional});
  schema.gradient = {
    .groups = {{"X"}}, .reads = {"X", "ShiftsTensor"}, .outputs = {"Out"}};
  return schema;
}

} // namespace

void add_slices(op_schema_table& table) {
  add(table, {slice(), strided_slice(), set_value(), flip(), roll()});
}

} // namespace troupe::graph::schemas

// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

#include <algorithm>
#include <utility>

namespace troupe::graph::schemas {

namespace {

/// XShape keeps X's extents behind a zero, so that it takes no memory.
void output_xshape(shape_inference& s) {
  const auto& x = s.dims("X");
  s.check(x.rank() < shape::max_rank, "X",
          "of rank " + std::to_string(shape::max_rank - 1) + " at most");
  std::vector<std::int64_t> dims{0};
  dims.insert(dims.end(), x.begin(), x.end());
  s.output("XShape", to_shape(dims), s.type("X"));
}

/// Extents of attribute `shape` with those of X for 0; at most one is -1.
std::vector<std::int64_t> wanted_extents(const shape_inference& s) {
  const auto& x = s.dims("X");
  auto dims = s.attributes().get_ints("shape", {});
  s.check_attribute(
    std::ranges::count(dims, -1) <= 1
      && std::ranges::all_of(dims, [](auto d) { return d >= -1; }),
    "shape", "non-negative extents and at most one -1");
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] == 0) {
      s.check(i < x.rank(), "X",
              "of rank " + std::to_string(i + 1)
                + " at least: attribute shape copies that extent");
      dims[i] = x[i];
    }
  return dims;
}

/// Extents that are copied (0) drop out on both sides; what is left of X must
/// fill what is left of Out. So an unknown batch that is copied is no obstacle.
void infer_reshape(shape_inference& s) {
  const auto& x = s.dims("X");
  const auto wanted = s.attributes().get_ints("shape", {});
  auto dims = wanted_extents(s);
  std::int64_t rest = 1;
  std::int64_t known = 1;
  for (std::size_t i = 0; i < x.rank(); ++i)
    if (i >= wanted.size() || wanted[i] != 0)
      rest = x[i] < 0 || rest < 0 ? -1 : rest * x[i];
  auto inferred = dims.end();
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (wanted[i] == -1)
      inferred = dims.begin() + static_cast<std::ptrdiff_t>(i);
    else if (wanted[i] != 0)
      known *= dims[i];
  const bool one_left = inferred != dims.end();
  s.check(rest < 0
            || (one_left ? known != 0 && rest % known == 0 : rest == known),
          "X", "reshapable to " + to_string(to_shape(wanted)));
  if (one_left)
    *inferred = rest < 0 ? -1 : rest / known;
  output_xshape(s);
  s.output("Out", to_shape(dims), s.type("X"));
}

void infer_flatten(shape_inference& s) {
  const auto& x = s.dims("X");
  const auto& a = s.attributes();
  const auto start = s.axis("start_axis", a.get_int("start_axis", 1), x.rank());
  const auto stop = s.axis("stop_axis", a.get_int("stop_axis", 1), x.rank());
  s.check_attribute(start <= stop, "start_axis", "at most stop_axis");
  std::vector<std::int64_t> dims{x.begin(), x.begin() + start};
  dims.push_back(product(x, start, stop + 1));
  dims.insert(dims.end(), x.begin() + stop + 1, x.end());
  output_xshape(s);
  s.output("Out", to_shape(dims), s.type("X"));
}

void infer_transpose(shape_inference& s) {
  const auto& x = s.dims("X");
  const auto axes = s.attributes().get_ints("axis", {});
  auto out = x;
  std::vector<bool> seen(x.rank());
  s.check_attribute(axes.size() == x.rank(), "axis",
                    "a permutation of the axes of X " + to_string(x));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto from = s.axis("axis", axes[i], x.rank());
    s.check_attribute(!seen[from], "axis", "a permutation: no axis twice");
    seen[from] = true;
    out[i] = x[from];
  }
  output_xshape(s);
  s.output("Out", out, s.type("X"));
}

void infer_concat(shape_inference& s) {
  auto out = s.dims("X");
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

/// Extents of the parts: attribute `sections`, of which one may be -1, or
/// equal parts.
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
  op.set_output("Out", {gradient_name(forward.only_input("X"))});
  op.attributes.set(
    "axis", static_cast<std::int32_t>(forward.attributes.get_int("axis", 0)));
  return {std::move(op)};
}

/// Negative bounds count from the end, all are clamped to the extent.
std::int64_t bound(std::int64_t at, std::int64_t extent) {
  return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent);
}

void infer_slice(shape_inference& s) {
  auto dims = s.dims("Input");
  const auto& a = s.attributes();
  const auto axes = a.get_ints("axes", {});
  const auto starts = a.get_ints("starts", {});
  const auto ends = a.get_ints("ends", {});
  s.check_attribute(axes.size() == starts.size() && axes.size() == ends.size(),
                    "axes", "as many as starts and ends");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    auto& extent = dims[s.axis("axes", axes[i], dims.rank())];
    if (extent >= 0)
      extent = std::max<std::int64_t>(
        bound(ends[i], extent) - bound(starts[i], extent), 0);
  }
  std::vector<bool> dropped(dims.rank());
  for (auto drop : a.get_ints("decrease_axis", {}))
    dropped[s.axis("decrease_axis", drop, dims.rank())] = true;
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < dims.rank(); ++i)
    if (!dropped[i])
      kept.push_back(dims[i]);
  s.output("Out", to_shape(kept), s.type("Input"));
}

op_schema with_xshape(std::string_view type, void (*infer)(shape_inference&)) {
  return {
    .type = type,
    .inputs = {{"X"}},
    .outputs = {{"Out"}, {"XShape", slot_arity::optional}},
    .infer = infer,
    .gradient = {.groups = {{"X"}}, .reads = {"XShape"}, .outputs = {"Out"}}};
}

} // namespace

void add_movement(op_schema_table& table) {
  add(table,
      {with_xshape("reshape2", infer_reshape),
       with_xshape("flatten_contiguous_range", infer_flatten),
       with_xshape("transpose2", infer_transpose),
       {.type = "concat",
        .inputs = {{"X", slot_arity::many}},
        .outputs = {{"Out"}},
        .infer = infer_concat,
        .gradient = {.groups = {{"X"}}, .reads = {"X"}, .outputs = {"Out"}}},
       {.type = "split",
        .inputs = {{"X"}},
        .outputs = {{"Out", slot_arity::many}},
        .infer = infer_split,
        .gradient = {.groups = {{"X"}},
                     .reads = {},
                     .outputs = {"Out"},
                     .make = split_gradient}},
       {.type = "slice",
        .inputs = {{"Input"}},
        .outputs = {{"Out"}},
        .infer = infer_slice,
        .gradient = {
          .groups = {{"Input"}}, .reads = {"Input"}, .outputs = {"Out"}}}});
}

} // namespace troupe::graph::schemas

// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

#include <algorithm>

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

void infer_triangle(shape_inference& s) {
  s.check(s.dims("X").rank() >= 2, "X", "of rank 2 at least");
  same_as_x(s);
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
       {.type = "tril_triu",
        .inputs = {{"X"}},
        .outputs = {{"Out"}},
        .infer = infer_triangle,
        .gradient = {.groups = {{"X"}}, .reads = {}, .outputs = {"Out"}}},
       {.type = "slice",
        .inputs = {{"Input"}},
        .outputs = {{"Out"}},
        .infer = infer_slice,
        .gradient = {
          .groups = {{"Input"}}, .reads = {"Input"}, .outputs = {"Out"}}}});
}

} // namespace troupe::graph::schemas

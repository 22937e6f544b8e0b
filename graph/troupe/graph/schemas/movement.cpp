// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

#include <algorithm>

namespace troupe::graph::schemas {

namespace {

/// XShape stores the extents of X after an extent of 0, so that it takes no
/// memory.
void output_xshape(shape_inference& s) {
  const auto& x = s.dims("X");
  s.check(x.rank() < shape::max_rank, "X",
          "of rank " + std::to_string(shape::max_rank - 1) + " at most");
  std::vector<std::int64_t> dims{0};
  dims.insert(dims.end(), x.begin(), x.end());
  s.output("XShape", to_shape(dims), s.type("X"));
}

/// Extents from attribute `shape`. 0 copies the extent of X; at most one extent
/// is -1.
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

/// If the shape is an input, only the rank is known.
void infer_dynamic_reshape(shape_inference& s) {
  auto rank = s.num_inputs("ShapeTensor");
  if (rank == 0)
    rank = static_cast<std::size_t>(
      std::max<std::int64_t>(product(s.dims("Shape"), 0, 1), 1));
  output_xshape(s);
  s.output("Out", unknown_extents(rank), s.type("X"));
}

/// Extents copied from X (0) are ignored on both sides, and the rest of X must
/// fill the rest of Out. An unknown batch that is copied therefore causes no
/// error.
void infer_reshape(shape_inference& s) {
  const auto& x = s.dims("X");
  if (s.has_input("ShapeTensor") || s.has_input("Shape"))
    return infer_dynamic_reshape(s);
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
  if (x.rank() == 0) {
    output_xshape(s);
    return s.output("Out", {1}, s.type("X"));
  }
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

void infer_flatten_matrix(shape_inference& s) {
  const auto& x = s.dims("X");
  const auto axis = s.attributes().get_int("axis", 1);
  s.check_attribute(axis >= 0 && axis <= static_cast<std::int64_t>(x.rank()),
                    "axis", "between axes of X " + to_string(x));
  const auto at = static_cast<std::size_t>(axis);
  output_xshape(s);
  s.output("Out", {product(x, 0, at), product(x, at, x.rank())}, s.type("X"));
}

/// An unknown extent that `axes` names is assumed to be 1.
void infer_squeeze(shape_inference& s) {
  const auto& x = s.dims("X");
  const auto axes = s.attributes().get_ints("axes", {});
  std::vector<bool> drops(x.rank(), axes.empty());
  for (auto axis : axes)
    drops[s.axis("axes", axis, x.rank())] = true;
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < x.rank(); ++i)
    if (!drops[i] || !(x[i] == 1 || (x[i] < 0 && !axes.empty())))
      dims.push_back(x[i]);
  output_xshape(s);
  s.output("Out", to_shape(dims), s.type("X"));
}

void infer_unsqueeze(shape_inference& s) {
  const auto& x = s.dims("X");
  std::vector<std::int64_t> dims{x.begin(), x.end()};
  auto added = s.num_inputs("AxesTensorList");
  if (s.has_input("AxesTensor"))
    added = static_cast<std::size_t>(
      std::max<std::int64_t>(product(s.dims("AxesTensor"), 0, 1), 1));
  output_xshape(s);
  if (added > 0)
    return s.output("Out", unknown_extents(x.rank() + added), s.type("X"));
  for (auto axis : s.attributes().get_ints("axes", {})) {
    const auto at = s.axis("axes", axis, dims.size() + 1);
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at), 1);
  }
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

void infer_triangle(shape_inference& s) {
  s.check(s.dims("X").rank() >= 2, "X", "of rank 2 at least");
  same_as_x(s);
}

/// An op with an output XShape, which its gradient op reads instead of X.
op_schema with_xshape(std::string_view type, void (*infer)(shape_inference&),
                      std::vector<slot_schema> more = {}) {
  op_schema schema{
    .type = type,
    .inputs = {{"X"}},
    .outputs = {{"Out"}, {"XShape", slot_arity::optional}},
    .infer = infer,
    .gradient = {.groups = {{"X"}}, .reads = {"XShape"}, .outputs = {"Out"}}};
  schema.inputs.insert(schema.inputs.end(), more.begin(), more.end());
  return schema;
}

op_schema without_xshape(std::string_view type, const op_schema& like) {
  auto schema = like;
  schema.type = type;
  schema.outputs = {{"Out"}};
  schema.gradient.reads = {"X"};
  return schema;
}

} // namespace

void add_movement(op_schema_table& table) {
  const auto reshape = with_xshape(
    "reshape2", infer_reshape,
    {{"Shape", slot_arity::optional}, {"ShapeTensor", slot_arity::any}});
  const auto squeeze = with_xshape("squeeze2", infer_squeeze);
  const auto unsqueeze = with_xshape("unsqueeze2", infer_unsqueeze,
                                     {{"AxesTensor", slot_arity::optional},
                                      {"AxesTensorList", slot_arity::any}});
  const auto flatten = with_xshape("flatten2", infer_flatten_matrix);
  const auto transpose = with_xshape("transpose2", infer_transpose);
  add(table,
      {reshape,
       squeeze,
       unsqueeze,
       flatten,
       transpose,
       without_xshape("reshape", reshape),
       without_xshape("squeeze", squeeze),
       without_xshape("unsqueeze", unsqueeze),
       without_xshape("flatten", flatten),
       without_xshape("transpose", transpose),
       with_xshape("flatten_contiguous_range", infer_flatten),
       {.type = "share_data",
        .inputs = {{"X"}},
        .outputs = {{"Out"}},
        .infer = same_as_x},
       {.type = "memcpy",
        .inputs = {{"X"}},
        .outputs = {{"Out"}},
        .infer = same_as_x},
       {.type = "tril_triu",
        .inputs = {{"X"}},
        .outputs = {{"Out"}},
        .infer = infer_triangle,
        .gradient = {.groups = {{"X"}}, .reads = {}, .outputs = {"Out"}}}});
}

} // namespace troupe::graph::schemas

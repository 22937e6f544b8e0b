// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

#include <algorithm>

namespace troupe::graph::schemas {

namespace {

using extents = std::vector<std::int64_t>;

/// Rank of a result if an input has its extents as values.
std::size_t rank_of_input(const shape_inference& s, std::string_view list,
                          std::string_view slot) {
  if (s.has_input(list))
    return s.num_inputs(list);
  return static_cast<std::size_t>(
    std::max<std::int64_t>(product(s.dims(slot), 0, s.dims(slot).rank()), 1));
}

/// Prepends extents of 1 to X, then repeats it up to `wanted`. -1 keeps the
/// extent of X.
void expand_to(shape_inference& s, extents wanted, std::string_view attribute) {
  const auto& x = s.dims("X");
  s.check_attribute(wanted.size() >= x.rank(), attribute,
                    "of the rank of X " + to_string(x) + " at least");
  const auto before = wanted.size() - x.rank();
  for (std::size_t i = before; i < wanted.size(); ++i) {
    const auto own = x[i - before];
    s.check(wanted[i] == -1 || own == 1 || fits(own, wanted[i]), "X",
            "expandable to " + to_string(to_shape(wanted)));
    if (wanted[i] == -1)
      wanted[i] = own;
  }
  s.output("Out", to_shape(wanted), s.type("X"));
}

void infer_expand(shape_inference& s) {
  if (s.has_input("Shape") || s.has_input("expand_shapes_tensor"))
    return s.output(
      "Out", unknown_extents(rank_of_input(s, "expand_shapes_tensor", "Shape")),
      s.type("X"));
  expand_to(s, s.attributes().get_ints("shape", {}), "shape");
}

void infer_expand_as(shape_inference& s) {
  auto wanted = s.attributes().get_ints("target_shape", {});
  if (s.has_input("Y"))
    wanted.assign(s.dims("Y").begin(), s.dims("Y").end());
  expand_to(s, std::move(wanted), "target_shape");
}

void infer_tile(shape_inference& s) {
  const auto& x = s.dims("X");
  if (s.has_input("RepeatTimes") || s.has_input("repeat_times_tensor"))
    return s.output(
      "Out",
      unknown_extents(std::max(
        x.rank(), rank_of_input(s, "repeat_times_tensor", "RepeatTimes"))),
      s.type("X"));
  auto out = s.attributes().get_ints("repeat_times", {});
  if (out.size() < x.rank())
    out.insert(out.begin(), x.rank() - out.size(), 1);
  const auto before = out.size() - x.rank();
  for (std::size_t i = 0; i < x.rank(); ++i)
    out[i + before] = x[i] < 0 ? -1 : x[i] * out[i + before];
  s.output("Out", to_shape(out), s.type("X"));
}

/// Attribute paddings has a pair (before, after) for each of `axes`, in that
/// order.
void pad_axes(shape_inference& s, std::initializer_list<std::size_t> axes) {
  auto out = s.dims("X");
  const auto pads = s.attributes().get_ints("paddings", {});
  s.check_attribute(pads.size() == 2 * axes.size(), "paddings",
                    std::to_string(2 * axes.size()) + " values");
  auto next = pads.begin();
  for (auto axis : axes) {
    out[axis] = out[axis] < 0 ? -1 : out[axis] + next[0] + next[1];
    next += 2;
  }
  s.output("Out", out, s.type("X"));
}

void infer_pad(shape_inference& s) {
  auto out = s.dims("X");
  const auto pads = s.attributes().get_ints("paddings", {});
  s.check_attribute(pads.size() == 2 * out.rank(), "paddings",
                    "a pair for each axis of X " + to_string(out));
  for (std::size_t i = 0; i < out.rank(); ++i)
    out[i] = out[i] < 0 ? -1 : out[i] + pads[2 * i] + pads[2 * i + 1];
  s.output("Out", out, s.type("X"));
}

/// Paddings [left, right, top, bottom, front, back].
void infer_pad3d(shape_inference& s) {
  s.check(s.dims("X").rank() == 5, "X", "of rank 5");
  const bool channels_last =
    s.attributes().get_string("data_format", "NCDHW") == "NDHWC";
  if (s.has_input("Paddings"))
    s.output("Out", unknown_extents(5), s.type("X"));
  else if (channels_last)
    pad_axes(s, {3, 2, 1});
  else
    pad_axes(s, {4, 3, 2});
}

/// Each output has one axis per input vector.
void infer_meshgrid(shape_inference& s) {
  extents dims;
  for (std::size_t i = 0; i < s.num_inputs("X"); ++i) {
    s.check(s.dims("X", i).rank() <= 1, "X", "a vector", i);
    dims.push_back(product(s.dims("X", i), 0, s.dims("X", i).rank()));
  }
  for (std::size_t i = 0; i < s.num_outputs("Out"); ++i)
    s.output("Out", to_shape(dims), s.type("X", i), i);
}

/// In Paddle's meshgrid_grad, the slot with the gradients of Out is named
/// outputs@GRAD.
std::vector<op_desc> meshgrid_gradient(const gradient_context& context) {
  const auto& forward = context.forward;
  const auto names_of = [](const std::vector<std::string>& of) {
    std::vector<std::string> names;
    for (const auto& name : of)
      names.push_back(gradient_name(name));
    return names;
  };
  op_desc op;
  op.type = "meshgrid_grad";
  op.attributes = forward.attributes;
  op.set_input("X", forward.input("X"));
  op.set_input("outputs@GRAD", names_of(forward.output("Out")));
  op.set_output("X@GRAD", names_of(forward.input("X")));
  return {std::move(op)};
}

op_schema expansion(std::string_view type, std::vector<slot_schema> inputs,
                    void (*infer)(shape_inference&),
                    std::vector<std::string_view> reads) {
  return {.type = type,
          .inputs = std::move(inputs),
          .outputs = {{"Out"}},
          .infer = infer,
          .gradient = {
            .groups = {{"X"}}, .reads = std::move(reads), .outputs = {"Out"}}};
}

} // namespace

void add_expansions(op_schema_table& table) {
  add(table,
      {expansion("expand_v2",
                 {{"X"},
                  {"Shape", slot_arity::optional},
                  {"expand_shapes_tensor", slot_arity::any}},
                 infer_expand, {"X", "Shape", "expand_shapes_tensor"}),
       expansion("expand_as_v2", {{"X"}, {"Y", slot_arity::optional}},
                 infer_expand_as, {"X"}),
       expansion("tile",
                 {{"X"},
                  {"RepeatTimes", slot_arity::optional},
                  {"repeat_times_tensor", slot_arity::any}},
                 infer_tile, {"X", "RepeatTimes", "repeat_times_tensor"}),
       expansion("pad", {{"X"}}, infer_pad, {}),
       expansion("pad3d", {{"X"}, {"Paddings", slot_arity::optional}},
                 infer_pad3d, {"X", "Paddings"}),
       {.type = "meshgrid",
        .inputs = {{"X", slot_arity::many}},
        .outputs = {{"Out", slot_arity::many}},
        .infer = infer_meshgrid,
        .gradient = {.groups = {{"X"}},
                     .reads = {},
                     .outputs = {"Out"},
                     .make = meshgrid_gradient}}});
}

} // namespace troupe::graph::schemas

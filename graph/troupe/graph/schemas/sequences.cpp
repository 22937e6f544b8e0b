// SPDX-License-Identifier: Apache-2.0
// Ops over sequences (level of detail). The number of rows that they produce is
// known only at run time, so the first extent of most outputs is unknown.
#include <troupe/graph/schemas/families.hpp>

#include <utility>

namespace troupe::graph::schemas {

namespace {

shape with_unknown_rows(shape dims) {
  if (dims.rank() > 0)
    dims[0] = -1;
  return dims;
}

void infer_rows(shape_inference& s) {
  s.output("Out", with_unknown_rows(s.dims("X")), s.type("X"));
}

void infer_pool(shape_inference& s) {
  const auto dims = with_unknown_rows(s.dims("X"));
  s.output("Out", dims, s.type("X"));
  s.output("MaxIndex", dims, dtype::int32);
}

void infer_reverse(shape_inference& s) {
  s.output("Y", s.dims("X"), s.type("X"));
}

void infer_pad(shape_inference& s) {
  const auto& x = s.dims("X");
  s.check(x.rank() > 0 && x.rank() < shape::max_rank, "X",
          "of rank 1 to " + std::to_string(shape::max_rank - 1));
  std::vector<std::int64_t> dims{-1,
                                 s.attributes().get_int("padded_length", -1)};
  dims.insert(dims.end(), x.begin() + 1, x.end());
  s.output("Out", to_shape(dims), s.type("X"));
  s.output("Length", {-1}, dtype::int64);
}

void infer_unpad(shape_inference& s) {
  const auto& x = s.dims("X");
  s.check(x.rank() >= 2, "X", "of rank 2 at least");
  std::vector<std::int64_t> dims{-1};
  dims.insert(dims.end(), x.begin() + 2, x.end());
  if (x.rank() == 2)
    dims.push_back(1);
  s.output("Out", to_shape(dims), s.type("X"));
}

std::vector<op_desc> reverse_gradient(const gradient_context& context) {
  op_desc op;
  op.type = "sequence_reverse";
  op.set_input("X", {gradient_name(context.forward.only_output("Y"))});
  op.set_output("Y", {gradient_name(context.forward.only_input("X"))});
  return {std::move(op)};
}

/// The gradient op reads MaxIndex, the positions of the maxima, only for
/// pooltype MAX.
std::vector<op_desc> pool_gradient(const gradient_context& context) {
  const auto& forward = context.forward;
  const auto& x = forward.only_input("X");
  if (!context.wanted(x))
    return {};
  op_desc op;
  op.type = "sequence_pool_grad";
  op.attributes = forward.attributes;
  op.set_input("X", {x});
  if (forward.attributes.get_string("pooltype", "AVERAGE") == "MAX")
    op.set_input("MaxIndex", forward.output("MaxIndex"));
  op.set_input("Out@GRAD", {gradient_name(forward.only_output("Out"))});
  op.set_output("X@GRAD", {gradient_name(x)});
  return {std::move(op)};
}

op_schema expanding(std::string_view type) {
  return {
    .type = type,
    .inputs = {{"X"}, {"Y"}},
    .outputs = {{"Out"}},
    .infer = infer_rows,
    .gradient = {.groups = {{"X"}}, .reads = {"X", "Y"}, .outputs = {"Out"}}};
}

} // namespace

void add_sequences(op_schema_table& table) {
  constexpr auto optional = slot_arity::optional;
  add(table,
      {{.type = "sequence_pool",
        .inputs = {{"X"}},
        .outputs = {{"Out"}, {"MaxIndex", optional}},
        .infer = infer_pool,
        .gradient = {.groups = {{"X"}},
                     .reads = {"X", "MaxIndex"},
                     .outputs = {"Out"},
                     .make = pool_gradient},
        .is_test = "is_test"},
       {.type = "sequence_softmax",
        .inputs = {{"X"}},
        .outputs = {{"Out"}},
        .infer = same_as_x,
        .gradient = {.groups = {{"X"}},
                     .reads = {"Out", "X"},
                     .outputs = {"Out"}}},
       expanding("sequence_expand"),
       expanding("sequence_expand_as"),
       {.type = "sequence_concat",
        .inputs = {{"X", slot_arity::many}},
        .outputs = {{"Out"}},
        .infer = infer_rows,
        .gradient = {.groups = {{"X"}}, .reads = {"X"}, .outputs = {"Out"}}},
       {.type = "sequence_reverse",
        .inputs = {{"X"}},
        .outputs = {{"Y"}},
        .infer = infer_reverse,
        .gradient = {.groups = {{"X"}},
                     .reads = {},
                     .outputs = {"Y"},
                     .make = reverse_gradient}},
       {.type = "sequence_pad",
        .inputs = {{"X"}, {"PadValue"}},
        .outputs = {{"Out"}, {"Length", optional}},
        .infer = infer_pad,
        .gradient = {.groups = {{"X"}}, .reads = {"X"}, .outputs = {"Out"}}},
       {.type = "sequence_unpad",
        .inputs = {{"X"}, {"Length"}},
        .outputs = {{"Out"}},
        .infer = infer_unpad,
        .gradient = {.groups = {{"X"}}, .reads = {"X"}, .outputs = {"Out"}}},
       {.type = "lod_reset",
        .inputs = {{"X"}, {"Y", optional}},
        .outputs = {{"Out"}},
        .infer = same_as_x,
        .gradient = {.groups = {{"X"}}, .reads = {"X"}, .outputs = {"Out"}}}});
}

} // namespace troupe::graph::schemas

// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

#include <troupe/graph/dtype_number.hpp>

#include <algorithm>

namespace troupe::graph::schemas {

namespace {

void infer_mean(shape_inference& s) {
  s.output("Out", {}, s.type("X"));
}

/// The shape of X without `axes`; `keep` keeps these axes with extent 1.
/// Without `axes`, or with `all`, all axes are reduced. A scalar has the axes 0
/// and -1.
shape reduced(const shape_inference& s, std::string_view attribute,
              const std::vector<std::int64_t>& axes, bool all, bool keep) {
  const auto& x = s.dims("X");
  std::vector<bool> is_reduced(std::max<std::size_t>(x.rank(), 1),
                               all || axes.empty());
  if (!all)
    for (auto axis : axes)
      is_reduced[s.axis(attribute, axis, is_reduced.size())] = true;
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < x.rank(); ++i)
    if (!is_reduced[i] || keep)
      out.push_back(is_reduced[i] ? 1 : x[i]);
  return to_shape(out);
}

shape reduced(const shape_inference& s) {
  const auto& a = s.attributes();
  return reduced(s, "dim", a.get_ints("dim", {0}),
                 a.get_bool("reduce_all", false),
                 a.get_bool("keep_dim", false));
}

void infer_reduction(shape_inference& s) {
  s.output("Out", reduced(s), s.type("X"));
}

/// Sums of int32 and booleans are int64 unless out_dtype is given.
void infer_reduce_sum(shape_inference& s) {
  const auto x = s.type("X");
  const bool narrow = x == dtype::boolean || x == dtype::int32;
  const auto number = s.attributes().get_int("out_dtype", -1);
  const auto otherwise = narrow ? dtype::int64 : x;
  s.output("Out", reduced(s), number < 0 ? otherwise : dtype_of_number(number));
}

void infer_logical(shape_inference& s) {
  s.output("Out", reduced(s), dtype::boolean);
}

void infer_p_norm(shape_inference& s) {
  const auto& a = s.attributes();
  s.output("Out",
           reduced(s, "axis", {a.get_int("axis", -1)},
                   a.get_bool("asvector", false), a.get_bool("keepdim", false)),
           s.type("X"));
}

void infer_logsumexp(shape_inference& s) {
  const auto& a = s.attributes();
  s.output("Out",
           reduced(s, "axis", a.get_ints("axis", {0}),
                   a.get_bool("reduce_all", false),
                   a.get_bool("keepdim", false)),
           s.type("X"));
}

op_schema reduction(std::string_view type, void (*infer)(shape_inference&),
                    std::vector<std::string_view> reads = {"X"}) {
  return {.type = type,
          .inputs = {{"X"}},
          .outputs = {{"Out"}},
          .infer = infer,
          .gradient = {
            .groups = {{"X"}}, .reads = std::move(reads), .outputs = {"Out"}}};
}

op_schema logical(std::string_view type) {
  return {.type = type,
          .inputs = {{"X"}},
          .outputs = {{"Out"}},
          .infer = infer_logical};
}

} // namespace

void add_reductions(op_schema_table& table) {
  add(table,
      {reduction("mean", infer_mean), reduction("reduce_mean", infer_reduction),
       reduction("reduce_sum", infer_reduce_sum),
       reduction("reduce_max", infer_reduction, {"X", "Out"}),
       reduction("reduce_min", infer_reduction, {"X", "Out"}),
       reduction("reduce_prod", infer_reduction, {"X", "Out"}),
       logical("reduce_all"), logical("reduce_any"),
       reduction("p_norm", infer_p_norm, {"X", "Out"}),
       reduction("frobenius_norm", infer_reduction, {"X", "Out"}),
       reduction("logsumexp", infer_logsumexp, {"X", "Out"})});
}

} // namespace troupe::graph::schemas

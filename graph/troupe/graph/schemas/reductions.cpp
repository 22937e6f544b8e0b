// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

namespace troupe::graph::schemas {

namespace {

void infer_mean(shape_inference& s) {
  s.output("Out", {}, s.type("X"));
}

std::vector<bool> reduced_axes(const shape_inference& s, std::size_t rank) {
  const auto axes = s.attributes().get_ints("dim", {0});
  if (s.attributes().get_bool("reduce_all", false) || axes.empty())
    return std::vector<bool>(rank, true);
  std::vector<bool> reduced(rank);
  for (auto axis : axes)
    reduced[s.axis("dim", axis, rank)] = true;
  return reduced;
}

/// A result without axes is a scalar of shape [].
void infer_reduction(shape_inference& s) {
  const auto& x = s.dims("X");
  const bool keep = s.attributes().get_bool("keep_dim", false);
  const auto reduced = reduced_axes(s, x.rank());
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < x.rank(); ++i)
    if (!reduced[i] || keep)
      out.push_back(reduced[i] ? 1 : x[i]);
  s.output("Out", to_shape(out), s.type("X"));
}

op_schema reduction(std::string_view type, void (*infer)(shape_inference&)) {
  return {.type = type,
          .inputs = {{"X"}},
          .outputs = {{"Out"}},
          .infer = infer,
          .gradient = {.groups = {{"X"}}, .reads = {"X"}, .outputs = {"Out"}}};
}

} // namespace

void add_reductions(op_schema_table& table) {
  add(table,
      {reduction("mean", infer_mean), reduction("reduce_mean", infer_reduction),
       reduction("reduce_sum", infer_reduction)});
}

} // namespace troupe::graph::schemas

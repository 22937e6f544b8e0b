// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/backend/cpu_lowering.hpp>

#include <troupe/actors/backend/cpu_filter_blocks.hpp>
#include <troupe/graph/merging/gathered_product.hpp>
#include <troupe/graph/merging/merging_update.hpp>
#include <troupe/graph/passes/fuse_batch_norm.hpp>
#include <troupe/graph/passes/recompute_activations.hpp>
#include <troupe/graph/passes/shape_inputs.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string_view>

namespace troupe::actors {

namespace {

/// A pass and the types of the ops that it makes.
struct pass_entry {
  bool graph::lowering_options::*wanted;
  std::span<const std::string_view> makes;
};

using options = graph::lowering_options;

constexpr std::array<pass_entry, 6> passes{{
  {&options::fuse_batch_norms, graph::fused_batch_norm_types},
  {&options::recompute_activations, {&graph::recompute_type, 1}},
  {&options::separate_shape_inputs, {&graph::shape_of_type, 1}},
  {&options::gather_products, {&graph::gathered_product_type, 1}},
  {&options::merge_in_updates, graph::merging_update_types},
  {&options::merge_in_updates, graph::gathered_update_types},
}};

} // namespace

graph::lowering_options cpu_lowering(graph::lowering_options wanted,
                                     const kernel_table& kernels,
                                     device_kind kind) {
  for (const auto& pass : passes)
    if (!std::ranges::all_of(pass.makes, [&](std::string_view type) {
          return kernels.has(type, kind);
        }))
      wanted.*pass.wanted = false;
  wanted.gradient_stream = false; // workers share the ops of one stream
  return wanted;
}

std::shared_ptr<const graph::program>
cpu_lowered(std::shared_ptr<const graph::program> p,
            const graph::lowering_options& possible) {
  if (!possible.kernel_layouts || !has_filter_gradients(*p))
    return p;
  return std::make_shared<const graph::program>(keep_filters_in_blocks(*p));
}

} // namespace troupe::actors

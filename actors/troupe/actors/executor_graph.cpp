// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/executor_graph.hpp>

#include <troupe/graph/merging/gathered_product.hpp>
#include <troupe/graph/merging/merging_update.hpp>
#include <troupe/graph/passes/fuse_batch_norm.hpp>
#include <troupe/graph/passes/rank_collectives.hpp>
#include <troupe/graph/passes/recompute_activations.hpp>
#include <troupe/graph/passes/shape_inputs.hpp>
#include <troupe/graph/passes/transfers.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>
#include <troupe/graph/sub_blocks.hpp>
#include <troupe/kernels/memory/shared_memory.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace troupe::actors {

namespace {

/// Whether all devices have kernels for these op types.
bool have_kernels(const kernel_table& kernels,
                  std::span<const std::string_view> op_types,
                  std::span<const device_id> devices) {
  return std::ranges::all_of(devices, [&](device_id d) {
    return std::ranges::all_of(op_types, [&](std::string_view type) {
      return kernels.has(type, d.kind);
    });
  });
}

bool is_split(const executor_options& options) {
  return options.nodes || !options.places.empty();
}

} // namespace

std::vector<std::uint32_t> places_of(const executor_options& options) {
  if (!options.nodes)
    return options.places;
  const auto& processes = options.nodes->process_of_device;
  return {processes.begin(), processes.end()};
}

std::shared_ptr<const graph::program>
exposed(std::shared_ptr<const graph::program> main) {
  if (main->blocks.size() < 2)
    return main;
  return std::make_shared<const graph::program>(
    graph::expose_sub_blocks(*main));
}

std::string loss_of(const graph::program& p, const std::string& named) {
  if (!named.empty())
    return named;
  try {
    return graph::find_loss(p);
  } catch (const error& e) {
    if (e.code() != errc::not_found)
      throw;
    return {};
  }
}

graph::build_options build_options_of(const executor_options& options,
                                      const std::string& loss) {
  const auto kernels = options.kernels
                         ? options.kernels
                         : std::make_shared<const kernel_table>(cpu_kernels());
  graph::build_options build;
  build.devices = options.devices;
  build.strategy = options.strategy;
  build.scale = options.scale;
  build.loss = loss;
  build.fetches = options.fetches;
  build.fuse_all_reduce_bytes = options.fuse_all_reduce_bytes;
  const auto split = is_split(options);
  const auto share = !split && share_memory(options.devices);
  build.share_parameters = options.share_parameters && share;
  build.batch = options.batch;
  build.gather_products =
    options.gather_products && share
    && have_kernels(*kernels, {&graph::gathered_product_type, 1},
                    options.devices);
  build.merge_in_updates =
    options.merge_in_updates && share
    && have_kernels(*kernels, graph::merging_update_types, options.devices)
    && have_kernels(*kernels, graph::gathered_update_types, options.devices);
  if (options.sync_batch_norm)
    build.batch_norms = graph::sync_batch_norm::all;
  build.fuse_batch_norms =
    options.fuse_batch_norms
    && have_kernels(*kernels, graph::fused_batch_norm_types, options.devices);
  build.recompute_activations =
    options.recompute_activations
    && have_kernels(*kernels, {&graph::recompute_type, 1}, options.devices);
  build.separate_shape_inputs =
    options.separate_shape_inputs
    && have_kernels(*kernels, {&graph::shape_of_type, 1}, options.devices);
  build.write_in_place = options.write_in_place;
  // From place to place values travel plain.
  build.filters_in_blocks = options.filters_in_blocks && !split;
  if (!loss.empty() && std::ranges::count(build.fetches, loss) == 0)
    build.fetches.push_back(loss);
  return build;
}

graph::ssa_graph build_graph(std::shared_ptr<const graph::program> p,
                             const executor_options& options,
                             const std::string& loss) {
  auto g =
    graph::build_ssa_graph(std::move(p), build_options_of(options, loss));
  if (options.rank_collectives)
    g = graph::make_rank_collectives(std::move(g));
  if (is_split(options))
    g = graph::add_transfers(std::move(g), places_of(options));
  for (auto& pass : options.passes)
    g = pass(std::move(g));
  graph::check_places(g);
  if (!options.skip_hazard_check)
    graph::check_hazards(g, options.steps_in_flight);
  return g;
}

} // namespace troupe::actors

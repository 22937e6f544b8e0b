// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/steps/executor_graph.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/graph/passes/gradient_stream.hpp>
#include <troupe/graph/passes/place_handles.hpp>
#include <troupe/graph/passes/rank_collectives.hpp>
#include <troupe/graph/passes/transfers.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>
#include <troupe/graph/sub_blocks.hpp>

#include <algorithm>
#include <utility>

namespace troupe::actors {

namespace {

bool is_split(const executor_options& options) {
  return options.nodes || !options.hooks.places.empty();
}

/// True if devices are in different places.
bool is_spread(const std::vector<std::uint32_t>& places) {
  return std::ranges::adjacent_find(places, std::ranges::not_equal_to{})
         != places.end();
}

/// By device: its place, which is its process in a run over several processes.
/// Empty: all devices are in one place.
std::vector<std::uint32_t> places_of(const executor_options& options) {
  if (!options.nodes)
    return options.hooks.places;
  const auto& processes = options.nodes->process_of_device;
  return {processes.begin(), processes.end()};
}

/// The build options of an executor with these options. The passes depend on
/// the kernels of its devices and on whether these share memory.
graph::build_options build_options_of(const executor_options& options,
                                      const std::string& loss) {
  const auto& devices = options.devices;
  graph::build_options build;
  build.devices = devices;
  build.strategy = options.strategy;
  build.scale = options.scale;
  build.accumulate = options.accumulate;
  build.loss = loss;
  build.fetches = options.fetches;
  build.lowering =
    lowering_for(devices, options.lowering,
                 options.kernels ? *options.kernels : kernels_for(devices));
  if (is_split(options)) // places share no memory and exchange plain values
    build.lowering.share_parameters = build.lowering.gather_products =
      build.lowering.merge_in_updates = build.lowering.kernel_layouts = false;
  build.spread_batch = is_spread(places_of(options));
  if (!loss.empty() && std::ranges::count(build.fetches, loss) == 0)
    build.fetches.push_back(loss);
  return build;
}

} // namespace

std::shared_ptr<const graph::program>
exposed(std::shared_ptr<const graph::program> main) {
  if (!main)
    throw error(errc::invalid_argument, "no program");
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

graph::ssa_graph build_unplaced_graph(std::shared_ptr<const graph::program> p,
                                      const executor_options& options,
                                      const std::string& loss) {
  const auto build = build_options_of(options, loss);
  p = lowered_for(options.devices, std::move(p), build.lowering);
  auto g = graph::build_ssa_graph(std::move(p), build);
  if (build.lowering.gradient_stream)
    g = graph::move_weight_gradients(std::move(g));
  return options.hooks.rank_collectives || is_spread(places_of(options))
             || (options.devices.size() > 1 && merges_by_rank(options.devices))
           ? graph::make_rank_collectives(std::move(g))
           : std::move(g);
}

graph::ssa_graph build_graph(std::shared_ptr<const graph::program> p,
                             const executor_options& options,
                             const std::string& loss, trace::phase_log* log) {
  auto g = build_unplaced_graph(std::move(p), options, loss);
  const auto places = places_of(options);
  g = graph::place_handles(std::move(g), options.places, places);
  if (is_split(options))
    g = graph::add_transfers(std::move(g), places);
  for (auto& pass : options.hooks.passes)
    g = pass(std::move(g));
  if (log)
    log->begin("check");
  graph::check_places(g);
  if (!options.hooks.skip_hazard_check)
    graph::check_hazards(g, options.steps_in_flight);
  return g;
}

} // namespace troupe::actors

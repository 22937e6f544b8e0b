// SPDX-License-Identifier: Apache-2.0
#include <actors/configurations.hpp>

#include "late_device.hpp"

#include <utility>

namespace troupe::test {

namespace {

executor_options on(const std::string& devices) {
  executor_options o;
  o.devices = parse_devices(devices);
  o.threads = 2;
  return o;
}

/// Without the options of the lowering that graphs over places or with a handle
/// per rank do not support.
executor_options on_apart(const std::string& devices) {
  auto o = on(devices);
  o.lowering.gather_products = o.lowering.share_parameters =
    o.lowering.merge_in_updates = false;
  return o;
}

configuration of(std::string name, executor_options options) {
  return {std::move(name), std::move(options)};
}

} // namespace

std::vector<configuration> all_configurations() {
  auto places = on_apart("cpu:2");
  places.hooks.places = {0, 1};
  auto messages = on("cpu:2");
  messages.hooks.form = edge_form::message;
  auto mixed = on("cpu:2");
  mixed.hooks.form = edge_form::mixed;
  auto late = on("cpu:2");
  for (int d = 0; d < 2; ++d)
    late.hooks.device_instances.push_back(make_late_device(d, 3, 20));
  auto ranks = on_apart("cpu:2");
  ranks.hooks.rank_collectives = true;
  return {of("cpu:1", on("cpu:1")),     of("cpu:2", on("cpu:2")),
          of("two places", places),     of("messages", messages),
          of("mixed", mixed),           of("late devices", late),
          of("rank collectives", ranks)};
}

} // namespace troupe::test

// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/device_choice.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/error.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

namespace troupe::apps {

namespace {

constexpr std::uint64_t trial_ns = 50'000'000;
constexpr int warm_up = 1, fewest_steps = 2;

int workers_of(const executor_options& options) {
  const auto cores = static_cast<int>(usable_cores());
  return options.threads == 0 ? cores : std::min(options.threads, cores);
}

bool may_choose(const executor_options& options, const feed_map& batch) {
  const bool several_samples = std::ranges::any_of(batch, [](const auto& feed) {
    const auto& dims = feed.second.dims();
    return dims.rank() > 0 && dims[0] > 1;
  });
  return several_samples && workers_of(options) > 1 && !options.deterministic
         && !options.dry_run && options.scale == graph::gradient_scale::coeff
         && options.strategy != graph::merge_strategy::none;
}

void set_cpu_devices(executor_options& options, int count) {
  options.devices = parse_devices("cpu:" + std::to_string(count));
  options.device_instances.clear();
  for (auto& device : make_devices(options.devices))
    options.device_instances.push_back(std::move(device));
  options.sync_batch_norm = options.sync_batch_norm || count > 1;
}

/// Nanoseconds of the fastest of a few steps.
std::uint64_t try_devices(executor_options options, int count,
                          const program_bundle& bundle, const feed_map& batch) {
  set_cpu_devices(options, count);
  options.fetches.clear();
  options.parameters = std::make_shared<scope>();
  run_startup(bundle.startup, *options.parameters, options.seed);
  executor trial(bundle.main, options);
  for (int i = 0; i < warm_up; ++i)
    trial.run(batch);
  auto least = std::numeric_limits<std::uint64_t>::max();
  const auto begin = now_ns();
  for (int i = 0; i < fewest_steps || now_ns() - begin < trial_ns; ++i) {
    const auto start = now_ns();
    trial.run(batch);
    least = std::min(least, now_ns() - start);
  }
  return least;
}

} // namespace

bool is_automatic(const network_options& options) {
  return options.devices == "cpu";
}

std::string describe_devices(const network_options& options,
                             std::size_t count) {
  return is_automatic(options) ? "cpu:" + std::to_string(count)
                               : options.devices;
}

void choose_cpu_devices(executor_options& options, const program_bundle& bundle,
                        const feed_map& batch) {
  if (!may_choose(options, batch))
    return;
  const int workers = workers_of(options);
  try {
    if (try_devices(options, workers, bundle, batch)
        < try_devices(options, 1, bundle, batch))
      set_cpu_devices(options, workers);
  } catch (const error&) {
    // The run itself will tell what is wrong with one device too.
  }
}

} // namespace troupe::apps

// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/device_choice.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/error.hpp>
#include <troupe/kernels/shared_memory.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::apps {

namespace {

constexpr std::uint64_t trial_ns = 50'000'000;
constexpr std::size_t fewest_steps = 2;
// Several devices must save so much of a step to be taken: what trials show
// beside that may be chance, and one device takes less memory.
constexpr double least_gain = 0.03;

bool may_choose(const executor_options& options, const feed_map& batch) {
  const bool several_samples = std::ranges::any_of(batch, [](const auto& feed) {
    const auto& dims = feed.second.dims();
    return dims.rank() > 0 && dims[0] > 1;
  });
  return several_samples && workers_of(options) > 1 && !options.deterministic
         && !options.dry_run && options.scale == graph::gradient_scale::coeff;
}

void set_cpu_devices(executor_options& options, int count) {
  options.devices = parse_devices("cpu:" + std::to_string(count));
  options.device_instances.clear();
  for (auto& device : make_devices(options.devices))
    options.device_instances.push_back(std::move(device));
  options.sync_batch_norm = options.sync_batch_norm || count > 1;
}

/// An executor of its own on `count` devices, with parameters of its own.
struct trial {
  executor_options options;
  std::unique_ptr<executor> exe;

  trial(const executor_options& wanted, int count, const program_bundle& bundle)
    : options(wanted) {
    set_cpu_devices(options, count);
    options.fetches.clear();
    options.parameters = std::make_shared<scope>();
    run_startup(bundle.startup, *options.parameters, options.seed);
    exe = std::make_unique<executor>(bundle.main, options);
  }
};

using values = std::map<std::string, tensor>;

/// Copies of all persistable tensors.
values copies_of(const program_bundle& bundle, const scope& parameters,
                 arena& memory) {
  values copies;
  for (const auto& [name, declared] : bundle.main.main().vars)
    if (declared.persistable)
      if (const auto* var = parameters.find(name); var && var->is_tensor())
        copies.emplace(name, clone(var->as_tensor(), memory));
  return copies;
}

/// Infinite where one has no number.
float largest_difference(const tensor& a, const tensor& b) {
  float most = 0;
  const auto x = a.values<float>(), y = b.values<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float apart = std::abs(x[i] - y[i]);
    most = std::isnan(apart) ? std::numeric_limits<float>::infinity()
                             : std::max(most, apart);
  }
  return most;
}

bool same_bits(const tensor& a, const tensor& b) {
  return a.bytes() == b.bytes()
         && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

/// Whether a step from `before` led to the same values but for rounding: apart
/// by little of what it changed.
bool same_step(const values& before, const values& a, const values& b) {
  constexpr float of_own = 1e-3f, of_largest = 1e-4f;
  const auto change = [&](const std::string& name, const tensor& value) {
    const auto was = before.find(name);
    return was == before.end() || value.type() != dtype::float32
             ? 0.0f
             : largest_difference(value, was->second);
  };
  float largest = 0;
  for (const auto& [name, value] : a)
    largest = std::max(largest, change(name, value));
  return std::ranges::all_of(a, [&](const auto& named) {
    const auto& [name, value] = named;
    const auto other = b.find(name);
    if (other == b.end() || value.type() != dtype::float32)
      return other != b.end() && same_bits(value, other->second);
    return largest_difference(value, other->second)
           <= std::max(of_own * change(name, value), of_largest * largest);
  });
}

/// Nanoseconds of a step, the median of a few.
double trial_step_ns(const executor_options& options, int count,
                     const program_bundle& bundle, const feed_map& batch) {
  const trial t(options, count, bundle);
  t.exe->run(batch); // warms up
  std::vector<std::uint64_t> steps;
  const auto begin = now_ns();
  while (steps.size() < fewest_steps || now_ns() - begin < trial_ns) {
    const auto start = now_ns();
    t.exe->run(batch);
    steps.push_back(now_ns() - start);
  }
  const auto middle =
    steps.begin() + static_cast<std::ptrdiff_t>((steps.size() - 1) / 2);
  std::ranges::nth_element(steps, middle);
  return static_cast<double>(*middle);
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

bool devices_agree(const executor_options& options, int count,
                   const program_bundle& bundle, const feed_map& batch) {
  arena memory(make_host_memory_source());
  values before;
  const auto after = [&](int devices) {
    const trial t(options, devices, bundle);
    before = copies_of(bundle, *t.options.parameters, memory);
    t.exe->run(batch);
    t.exe->synchronize_parameters();
    return copies_of(bundle, *t.options.parameters, memory);
  };
  const auto of_one = after(1);
  return same_step(before, of_one, after(count));
}

void choose_cpu_devices(executor_options& options,
                        std::span<const graph::merge_strategy> strategies,
                        const program_bundle& bundle, const feed_map& batch) {
  if (!may_choose(options, batch))
    return;
  const int workers = workers_of(options);
  const auto bar = [&] {
    return (1 - least_gain) * trial_step_ns(options, 1, bundle, batch);
  };
  try {
    auto least = bar();
    std::optional<executor_options> best;
    for (const auto strategy : strategies) {
      if (strategy == graph::merge_strategy::none)
        continue;
      auto tried = options;
      tried.strategy = strategy;
      const auto ns = trial_step_ns(tried, workers, bundle, batch);
      if (ns >= least)
        continue;
      least = ns;
      best = tried;
    }
    // Once more, in case that one device just had a slow moment.
    if (best && least < bar() && devices_agree(*best, workers, bundle, batch)) {
      options.strategy = best->strategy;
      set_cpu_devices(options, workers);
    }
  } catch (const error&) {
    // The run itself will tell what is wrong with one device too.
  }
}

std::vector<graph::merge_strategy>
strategies_to_try(const network_options& options) {
  if (!options.strategy.empty())
    return {graph::parse_merge_strategy(options.strategy)};
  return {graph::merge_strategy::all_reduce, graph::merge_strategy::reduce};
}

graph::merge_strategy strategy_for(const network_options& options,
                                   std::span<const device_id> devices) {
  if (!options.strategy.empty())
    return graph::parse_merge_strategy(options.strategy);
  return devices.size() > 1 && share_memory(devices)
           ? graph::merge_strategy::reduce
           : graph::merge_strategy::all_reduce;
}

} // namespace troupe::apps

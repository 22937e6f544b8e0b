// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/training/device_choice.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/configure.hpp>
#include <troupe/apps/data/samples.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/base/error.hpp>
#include <troupe/graph/program_cost.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace troupe::apps {

namespace {

// Several devices must save at least this share of a step. A smaller gain could
// be noise, and one device takes less memory.
constexpr double least_gain = 0.02;
// Length of a turn; a turn is at least one step.
constexpr std::uint64_t turn_ns = 5'000'000;
constexpr std::size_t fewest_turns = 6;
constexpr std::uint64_t shortest_trial_ns = 100'000'000;
constexpr std::uint64_t longest_trial_ns = 1'000'000'000;
// With longer steps, a trial would far exceed its time limit.
constexpr std::uint64_t longest_step_ns = 1'000'000'000;
// A fast core: a step that takes long at this speed takes long on most
// machines.
constexpr graph::roofline fast_worker{.flops_per_s = 100e9,
                                      .bytes_per_s = 20e9};

bool may_choose(const executor_options& options, const feed_map& batch) {
  const bool several_samples = std::ranges::any_of(batch, [](const auto& feed) {
    const auto& dims = feed.second.dims();
    return dims.rank() > 0 && dims[0] > 1;
  });
  return several_samples && worker_count(options.threads) > 1
         && !options.hooks.dry_run
         && options.scale == graph::gradient_scale::coeff;
}

/// True if the work of a step takes fast workers longer than `longest_step_ns`.
/// False if it is not known.
bool is_long(const graph::program& p, std::int64_t samples, int workers) {
  if (samples == 0)
    return false;
  try {
    const auto seconds =
      fast_worker.seconds(graph::count_cost(p, samples)) / workers;
    return seconds * 1e9 > static_cast<double>(longest_step_ns);
  } catch (const error&) { // an op without a schema, for example
    return false;
  }
}

void set_cpu_devices(executor_options& options, int count) {
  options.devices = parse_devices("cpu:" + std::to_string(count));
  options.hooks.device_instances = make_devices(options.devices);
  options.lowering.sync_batch_norm =
    options.lowering.sync_batch_norm || count > 1;
}

/// A separate executor on `count` devices, with its own parameters.
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
        copies.emplace(
          name, clone(parameters.to_host(var->as_tensor(), memory), memory));
  return copies;
}

/// Infinite if an element of either is not a number.
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

/// True if `a` and `b`, two results of a step from `before`, are equal except
/// for rounding: they differ by little compared with what the step changed.
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

/// Cancels the steps of a trial when `stop` is requested.
void watch_for(const stop_request* stop, std::function<void()> cancel,
               std::optional<stop_watch>& watch) {
  if (stop)
    watch.emplace(*stop, std::move(cancel));
}

/// Runs a step. Throws error(cancelled) if a stop was requested before it.
void run_step(const trial& way, const feed_map& batch,
              const trial_observer& observer) {
  if (observer.stop && observer.stop->stopped())
    throw error(errc::cancelled, "the trial was stopped");
  way.exe->run(batch);
  if (observer.step_ends)
    observer.step_ends();
}

/// Runs the steps of a turn and adds their times to `steps`.
void take_turn(const trial& way, const feed_map& batch,
               const trial_observer& observer, samples& steps) {
  const auto begin = now_ns();
  auto start = begin;
  do {
    run_step(way, batch, observer);
    const auto end = now_ns();
    steps.add(static_cast<double>(end - start));
    start = end;
  } while (start - begin < turn_ns);
}

/// Step times of both configurations, from the same turns.
struct turn_times {
  samples one, several;

  /// Below 1 if several devices are faster.
  double ratio() const { return several.median() / one.median(); }
};

/// Runs a first step, which warms up. True if it took longer than
/// `longest_step_ns`.
bool begins_slowly(const trial& way, const feed_map& batch,
                   const trial_observer& observer) {
  const auto begin = now_ns();
  run_step(way, batch, observer);
  return now_ns() - begin > longest_step_ns;
}

/// True if steps take less time on `count` devices than on one. Both train in
/// turns, so that a slow phase of the machine affects both. The trial ends when
/// even and odd turns agree, or after a first step that takes too long.
bool saves_time(const executor_options& options, int count,
                const program_bundle& bundle, const feed_map& batch,
                const trial_observer& observer) {
  const trial one(options, 1, bundle);
  const trial several(options, count, bundle);
  std::optional<stop_watch> watch;
  watch_for(
    observer.stop,
    [&] {
      one.exe->cancel();
      several.exe->cancel();
    },
    watch);
  if (begins_slowly(one, batch, observer)
      || begins_slowly(several, batch, observer))
    return false;
  constexpr double bar = 1 - least_gain;
  std::array<turn_times, 2> halves;
  const auto begin = now_ns();
  for (std::size_t turn = 0;; ++turn) {
    auto& times = halves[turn % 2];
    for (auto [way, taken] :
         {std::pair{&several, &times.several}, std::pair{&one, &times.one}})
      take_turn(*way, batch, observer, *taken);
    const auto elapsed = now_ns() - begin;
    if (turn == 0 && elapsed >= longest_trial_ns)
      return halves[0].ratio() < bar;
    if (elapsed < longest_trial_ns
        && (turn + 1 < fewest_turns || elapsed < shortest_trial_ns))
      continue;
    const auto even = halves[0].ratio(), odd = halves[1].ratio();
    if ((even < bar) == (odd < bar) || elapsed >= longest_trial_ns)
      return even * odd < bar * bar;
  }
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
                   const program_bundle& bundle, const feed_map& batch,
                   const stop_request* stop) {
  arena memory(make_host_memory_source());
  values before;
  const auto after = [&](int devices) {
    const trial t(options, devices, bundle);
    before = copies_of(bundle, *t.options.parameters, memory);
    std::optional<stop_watch> watch;
    watch_for(
      stop, [&] { t.exe->cancel(); }, watch);
    t.exe->update_in_next_step();
    t.exe->run(batch);
    t.exe->synchronize_parameters();
    return copies_of(bundle, *t.options.parameters, memory);
  };
  const auto of_one = after(1);
  return same_step(before, of_one, after(count));
}

void choose_cpu_devices(executor_options& options, const network_options& given,
                        const program_bundle& bundle, const feed_map& batch,
                        const trial_observer& observer) {
  if (!may_choose(options, batch))
    return;
  const auto workers = static_cast<int>(worker_count(options.threads));
  auto several = options;
  set_cpu_devices(several, workers);
  several.strategy = strategy_for(given, several.devices);
  if (several.strategy == graph::merge_strategy::none
      || is_long(bundle.main, options.lowering.batch, workers))
    return;
  if (observer.begins)
    observer.begins();
  try {
    if (saves_time(several, workers, bundle, batch, observer)
        && devices_agree(several, workers, bundle, batch, observer.stop))
      options = several;
  } catch (const error&) {
    // Stopped, or the program does not run on several devices. If one device
    // fails too, the run itself reports the error.
  }
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

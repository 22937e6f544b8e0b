// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/common_options.hpp>
#include <troupe/apps/stop_request.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace troupe::apps {

/// True for `--devices cpu`: Troupe chooses the number of CPU devices.
bool is_automatic(const network_options& options);

/// The given devices, or the chosen ones: "cpu:2".
std::string describe_devices(const network_options& options, std::size_t count);

/// True if a step on `batch` gives the same parameters and statistics on
/// `count` CPU devices as on one, except for rounding. They differ if the loss
/// is a sum over samples, or if each device keeps its own statistics. Throws
/// the error of a failed step; error(cancelled) if `stop` is requested.
bool devices_agree(const executor_options& options, int count,
                   const program_bundle& bundle, const feed_map& batch,
                   const stop_request* stop = nullptr);

/// Observes and stops a trial.
struct trial_observer {
  std::function<void()> begins = {};    ///< called when a trial begins
  std::function<void()> step_ends = {}; ///< called after each of its steps
  const stop_request* stop = nullptr;   ///< ends it, also within a step
};

/// Chooses between one CPU device and one per worker. Several devices are
/// chosen if steps are faster on them and `devices_agree`. Then this sets
/// `options.devices`, `sync_batch_norm`, and the strategy of `strategy_for`.
/// Otherwise `options` does not change.
///
/// To compare them, both configurations train on `batch` in turns, each with
/// its own parameters. After a first step each, this takes 0.1 s to 1 s; if one
/// turn of each takes longer than 1 s, there is no second turn.
///
/// There is no trial if several devices could change results or gain nothing:
/// with one worker, a batch of one sample, a dry run, a gradient scale other
/// than coeff, or the strategy none. Nor is there one if a step takes longer
/// than 1 s by its cost (`graph::count_cost`) for `lowering.batch` samples, at
/// 100 GFLOP/s and 20 GB/s per worker. If a first step takes longer than 1 s,
/// the trial ends, and one device is used. The same holds if the trial is
/// stopped or fails.
void choose_cpu_devices(executor_options& options, const network_options& given,
                        const program_bundle& bundle, const feed_map& batch,
                        const trial_observer& observer = {});

/// The given strategy, or a default that suits the devices. The default is
/// reduce for several devices that share memory: they then use a single copy of
/// each parameter, which one of them updates. Otherwise it is all_reduce. Both
/// give the same values.
graph::merge_strategy strategy_for(const network_options& options,
                                   std::span<const device_id> devices);

} // namespace troupe::apps

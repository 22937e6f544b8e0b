// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/common_options.hpp>
#include <troupe/apps/stop_request.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace troupe::apps {

/// Whether Troupe is to choose how many CPU devices there are: `--devices cpu`.
bool is_automatic(const network_options& options);

/// The devices as given, or as chosen: "cpu:2".
std::string describe_devices(const network_options& options, std::size_t count);

/// Whether a step of `batch` leaves the same parameters and statistics behind
/// on `count` CPU devices as on one, but for rounding. It does not if the loss
/// is a sum over samples, or if devices keep statistics each for itself. Throws
/// what the step fails with; error(cancelled) once `stop` is.
bool devices_agree(const executor_options& options, int count,
                   const program_bundle& bundle, const feed_map& batch,
                   const stop_request* stop = nullptr);

/// Who follows a trial.
struct trial_observer {
  std::function<void()> begins;       ///< called if there is one
  const stop_request* stop = nullptr; ///< ends it, within a step too
};

/// Sets `options.devices` to one CPU device, or to one per worker if steps take
/// less time so and the devices agree, and then `strategy` to that of
/// `strategy_for` and `sync_batch_norm`. Trains on `batch` both ways in turns
/// to find out, each with parameters of its own: for 0.1 s to 1 s, or one turn
/// each if steps are long. Chooses nothing if it is stopped.
///
/// One device, untried, if results could differ otherwise or nothing could be
/// gained: one worker, a batch of one sample, bit-equal runs asked for
/// (`options.deterministic`), a dry run, a gradient scale other than coeff, the
/// strategy none; or if the program does not run on several devices.
void choose_cpu_devices(executor_options& options, const network_options& given,
                        const program_bundle& bundle, const feed_map& batch,
                        const trial_observer& observer = {});

/// The strategy that is given, else what suits the devices: reduce if there are
/// several and they share their memory, where they then use one copy of each
/// parameter, which one of them updates; else all_reduce. Values are the same.
graph::merge_strategy strategy_for(const network_options& options,
                                   std::span<const device_id> devices);

} // namespace troupe::apps

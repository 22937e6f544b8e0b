// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/common_options.hpp>

#include <cstddef>
#include <string>

namespace troupe::apps {

/// Whether Troupe is to choose how many CPU devices there are: `--devices cpu`.
bool is_automatic(const network_options& options);

/// The devices as given, or as chosen: "cpu:2".
std::string describe_devices(const network_options& options, std::size_t count);

/// Whether a step of `batch` leaves the same parameters and statistics behind
/// on `count` CPU devices as on one, but for rounding. It does not if the loss
/// is a sum over samples, or if devices keep statistics each for itself. Throws
/// what the step fails with.
bool devices_agree(const executor_options& options, int count,
                   const program_bundle& bundle, const feed_map& batch);

/// Sets `options.devices` to one CPU device, or to one per worker if steps take
/// less time so and the devices agree, and then `sync_batch_norm`. Trains a few
/// steps of `batch` both ways to find out, from parameters of its own: some
/// 0.1 s, or four steps each way if they are long.
///
/// One device, untried, if results could differ otherwise or nothing could be
/// gained: one worker, a batch of one sample, bit-equal runs asked for
/// (`options.deterministic`), a dry run, a gradient scale other than coeff, the
/// strategy none; or if the program does not run on several devices.
void choose_cpu_devices(executor_options& options, const program_bundle& bundle,
                        const feed_map& batch);

} // namespace troupe::apps

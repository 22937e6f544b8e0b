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

/// Sets `options.devices` to one CPU device, or to one per worker if steps take
/// less time so, and then `sync_batch_norm`, so that the results are the same
/// but for rounding. Trains a few steps of `batch` both ways to find out, from
/// parameters of its own: some 0.1 s, or three steps each way if they are long.
///
/// One device, untried, if results could differ otherwise or nothing could be
/// gained: one worker, a batch of one sample, bit-equal runs asked for
/// (`options.deterministic`), a dry run, a gradient scale other than coeff, the
/// strategy none; or if the program does not run on several devices.
void choose_cpu_devices(executor_options& options, const program_bundle& bundle,
                        const feed_map& batch);

} // namespace troupe::apps

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/kernels/device.hpp>

#include <memory>
#include <vector>

namespace troupe::actors {

/// Throws error(invalid_argument) for options that make no sense.
void check_options(const executor_options& options);

/// The devices of an executor with these options: those that its hooks give, or
/// new ones. Throws error(invalid_argument) if they give another number, and
/// what `make_devices` throws.
std::vector<std::shared_ptr<device>>
devices_of(const executor_options& options);

/// The kernels of the options, and in place of kernels for `outside_ops` some
/// that refuse to run: they run if such an op is in a block.
/// Throws error(invalid_argument) if an entry of `outside_ops` is null.
std::shared_ptr<const kernel_table>
with_outside_ops(const executor_options& options);

} // namespace troupe::actors

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <memory>

namespace troupe {

/// A kernel that runs `function` with outputs apart from its inputs, even if
/// the op names one variable in both. For functions that move elements: they
/// could otherwise read what they have already written.
std::unique_ptr<kernel> write_apart(kernel_function function);

} // namespace troupe

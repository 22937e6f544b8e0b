// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>

namespace troupe {

class executor;

namespace actors {

/// True if the step is one of the newest and has failed. False of steps that
/// are so old that nothing is known of them. Any thread.
bool has_failed(const executor& exe, step_id step) noexcept;

} // namespace actors
} // namespace troupe

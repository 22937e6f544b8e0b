// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/handles.hpp>
#include <troupe/training/actors/errors.hpp>

#include <caf/result.hpp>

#include <string>

namespace troupe::actors {

/// The actor of the handle of that name, or the error that there is none: the
/// answer to `ask_handle`.
inline caf::result<caf::actor> handle_answer(const executor& exe,
                                             const std::string& name) {
  try {
    return handle_address(exe, name);
  } catch (const error& failure) {
    return to_caf(failure);
  }
}

} // namespace troupe::actors

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/kernels/memory/address_space.hpp>

#include <new>
#include <string>

namespace troupe::apps {

/// Runs `work`, which comes after saving. If it fails, the error also says that
/// the trained program is saved.
/// @param folder where it is saved; empty: nowhere
template <class Function>
void run_after_saving(const std::string& folder, Function work) {
  const auto kept = "; the trained program is saved in " + folder;
  try {
    work();
  } catch (const error& failure) {
    if (folder.empty())
      throw;
    throw error(failure.code(), failure.message() + kept, failure.where());
  } catch (const std::bad_alloc&) {
    if (folder.empty())
      throw;
    throw error(errc::out_of_memory, out_of_memory_text() + kept);
  }
}

} // namespace troupe::apps

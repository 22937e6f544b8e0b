// SPDX-License-Identifier: Apache-2.0
// Linked instead of sqlite_export.cpp where CMake finds no SQLite.
#include <troupe/trace/export/exporters.hpp>

#include <troupe/base/error.hpp>

namespace troupe::trace {

void export_sqlite(export_input, std::span<const parcel>,
                   const std::filesystem::path&) {
  throw error(errc::not_found, "this build has no SQLite: install "
                               "libsqlite3-dev and configure anew");
}

bool has_sqlite() noexcept {
  return false;
}

} // namespace troupe::trace

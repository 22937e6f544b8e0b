// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/input_type.hpp>

#include <troupe/base/error.hpp>

namespace troupe::apps {

std::filesystem::file_type input_type(const std::filesystem::path& path) {
  std::error_code failure;
  const auto status = std::filesystem::status(path, failure);
  if (!std::filesystem::status_known(status))
    throw error(errc::io_failure, path.string() + ": " + failure.message());
  return status.type();
}

} // namespace troupe::apps

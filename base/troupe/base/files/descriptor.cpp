// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/files/descriptor.hpp>

#include <unistd.h>

namespace troupe {

descriptor::~descriptor() {
  if (fd_ >= 0)
    ::close(fd_);
}

} // namespace troupe

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace troupe::apps {

/// The command line is wrong: exit code 2.
class usage_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

} // namespace troupe::apps

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/op_arguments.hpp>

#include <compare>
#include <string>
#include <vector>

namespace troupe::apps {

/// An op of the program, the same on all ranks and devices.
struct op_key {
  std::string type;
  std::string output; ///< the first variable that it writes; empty: none
  friend auto operator<=>(const op_key&, const op_key&) = default;
};

/// The key of the op with these outputs.
op_key key_of(const std::string& type, const std::vector<op_slot>& outputs);

} // namespace troupe::apps

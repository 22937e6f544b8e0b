// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/stragglers/op_key.hpp>

#include <troupe/graph/argument.hpp>

namespace troupe::apps {

op_key key_of(const std::string& type, const std::vector<op_slot>& outputs) {
  for (auto& slot : outputs)
    for (auto& name : slot.arguments)
      if (name != graph::empty_argument)
        return {type, name};
  return {type, {}};
}

} // namespace troupe::apps

// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/parameter_backup.hpp>

namespace troupe::apps {

void parameter_backup::take(scope& parameters, std::size_t replicas) {
  values_.assign(replicas, {});
  for (std::size_t r = 0; r < replicas; ++r) {
    auto& from = parameters.replica(r);
    for (auto& name : from.names())
      if (auto& held = from.var(name); held.is_tensor() && held.as_tensor())
        values_[r].emplace(name, held.as_tensor().share());
  }
}

void parameter_backup::restore(scope& parameters) const {
  for (std::size_t r = 0; r < values_.size(); ++r)
    for (auto& [name, value] : values_[r])
      parameters.replica(r).var(name).set(value);
}

} // namespace troupe::apps

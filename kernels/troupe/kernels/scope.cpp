// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/scope.hpp>

namespace troupe {

scope::scope() = default;
scope::~scope() = default;

variable& scope::var(std::string_view name) {
  auto found = variables_.find(name);
  if (found == variables_.end())
    found = variables_.emplace(name, std::make_unique<variable>()).first;
  return *found->second;
}

variable* scope::find(std::string_view name) noexcept {
  auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : found->second.get();
}

const variable* scope::find(std::string_view name) const noexcept {
  auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : found->second.get();
}

std::vector<std::string> scope::names() const {
  std::vector<std::string> result;
  result.reserve(variables_.size());
  for (const auto& [name, value] : variables_)
    result.push_back(name);
  return result;
}

scope& scope::replica(std::size_t index) {
  if (index == 0)
    return *this;
  while (replicas_.size() < index)
    replicas_.push_back(std::make_unique<scope>());
  return *replicas_[index - 1];
}

void scope::drop_replicas() noexcept {
  replicas_.clear();
}

} // namespace troupe

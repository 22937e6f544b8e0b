// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/scope.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/device.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace troupe {

namespace {

bool lies_in(const variable& v, const arena& memory) {
  const auto there = [&](const tensor& t) { return memory.owns(t.memory()); };
  return (v.is_tensor() && there(v.as_tensor()))
         || (v.is_rows() && there(v.as_rows().values))
         || (v.is_array() && std::ranges::any_of(v.as_array(), there));
}

} // namespace

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

const scope& scope::replica(std::size_t index) const {
  if (index == 0)
    return *this;
  if (index > replicas_.size())
    throw error(errc::out_of_range,
                "the scope has " + std::to_string(replicas_.size())
                  + " replicas, none with number " + std::to_string(index));
  return *replicas_[index - 1];
}

void scope::drop_replicas() noexcept {
  replicas_.clear();
}

void scope::note_discard(std::string devices) {
  discarded_by_ = std::move(devices);
  ++discards_;
}

void scope::add_device(std::shared_ptr<device> on) {
  std::erase_if(devices_, [this](const auto& d) {
    return d.use_count() == 1
           && std::ranges::none_of(variables_, [&](const auto& entry) {
                return lies_in(*entry.second, d->memory());
              });
  });
  if (!on->memory().is_host() && std::ranges::count(devices_, on) == 0)
    devices_.push_back(std::move(on));
}

tensor scope::to_host(const tensor& value, arena& host) const {
  if (value.memory().is_host())
    return value.is_plain() ? value : clone(value, host);
  for (auto& d : devices_)
    if (d->memory().owns(value.memory()))
      return d->to_host(value, host);
  throw error(errc::invalid_argument,
              "a value in the memory of a device that the scope does not know");
}

void scope::bring_to(std::string_view name, device& on) {
  auto* held = find(name);
  if (!held || !held->is_tensor() || on.reaches(held->as_tensor()))
    return;
  arena host{make_host_memory_source()}; // its blocks outlive it
  held->set(on.to_device(to_host(held->as_tensor(), host)));
}

} // namespace troupe

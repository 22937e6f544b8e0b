// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/name_table.hpp>

#include <bit>
#include <functional>

namespace troupe::graph {

namespace {

std::uint32_t hash_of(std::string_view name) noexcept {
  return static_cast<std::uint32_t>(std::hash<std::string_view>{}(name));
}

} // namespace

name_table::name_table(std::size_t names)
  : slots_(std::bit_ceil(2 * names + 2)) {
  names_.reserve(names);
}

// The slot of `name`, or the free slot for it.
std::size_t name_table::position(std::string_view name,
                                 std::uint32_t hash) const {
  const auto mask = slots_.size() - 1;
  auto at = hash & mask;
  while (slots_[at].id != none
         && (slots_[at].hash != hash || names_[slots_[at].id] != name))
    at = (at + 1) & mask;
  return at;
}

void name_table::grow() {
  std::vector<slot> old(2 * slots_.size());
  old.swap(slots_);
  for (auto& s : old)
    if (s.id != none)
      slots_[position(names_[s.id], s.hash)] = s;
}

name_id name_table::add(std::string_view name) {
  const auto hash = hash_of(name);
  auto at = position(name, hash);
  if (slots_[at].id != none)
    return slots_[at].id;
  if (2 * names_.size() + 2 > slots_.size()) {
    grow();
    at = position(name, hash);
  }
  slots_[at] = {hash, static_cast<name_id>(names_.size())};
  names_.push_back(name);
  return slots_[at].id;
}

name_id name_table::find(std::string_view name) const {
  return slots_[position(name, hash_of(name))].id;
}

} // namespace troupe::graph

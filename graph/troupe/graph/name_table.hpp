// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::graph {

/// The number of a name, from 0.
using name_id = std::uint32_t;

/// Numbers names in the order in which they are first added. The characters of
/// names are not copied and must outlive the table.
///
/// A hash table with open addressing and slots of eight bytes. Speed matters:
/// building graphs with a million handles spends much of its time here.
class name_table {
public:
  static constexpr name_id none = UINT32_MAX;

  /// Reserves room for `names` names.
  explicit name_table(std::size_t names = 0);

  /// The number of `name`. A new name gets a new number.
  name_id add(std::string_view name);
  /// `none` if there is no such name.
  name_id find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != none; }

  std::string_view operator[](name_id id) const { return names_[id]; }
  std::size_t size() const noexcept { return names_.size(); }

private:
  struct slot {
    std::uint32_t hash = 0;
    name_id id = none;
  };

  std::size_t position(std::string_view name, std::uint32_t hash) const;
  void grow();

  std::vector<slot> slots_; // a power of two, at most half of them used
  std::vector<std::string_view> names_;
};

} // namespace troupe::graph

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// A reference to another block of the program (control flow).
struct block_ref {
  std::int32_t index = 0;
  friend bool operator==(block_ref, block_ref) = default;
};

/// Value of an op's attribute. The alternatives are Paddle's AttrTypes, so that
/// a program can be read and written back unchanged: INT, FLOAT, STRING, INTS,
/// FLOATS, STRINGS, BOOLEAN, BOOLEANS, BLOCK, LONG, BLOCKS, LONGS, FLOAT64,
/// FLOAT64S.
using attribute =
  std::variant<std::int32_t, float, std::string, std::vector<std::int32_t>,
               std::vector<float>, std::vector<std::string>, bool,
               std::vector<bool>, block_ref, std::int64_t,
               std::vector<block_ref>, std::vector<std::int64_t>, double,
               std::vector<double>>;

/// Attributes by name. Maps are copy-on-write, so copying an op is cheap.
/// Thread rule: as for std::vector; maps that share memory count as different
/// objects.
///
/// The typed getters convert between the number types that Paddle uses
/// interchangeably: INT and LONG, INTS and LONGS, FLOAT and FLOAT64, FLOATS and
/// FLOAT64S. For any other type they throw error(invalid_argument) naming the
/// attribute.
class attribute_map {
public:
  /// A name and its value.
  using entry = std::pair<std::string, attribute>;

  attribute_map() = default;
  /// If several entries have the same name, the last one is used.
  attribute_map(std::initializer_list<entry> init);
  /// The same.
  explicit attribute_map(std::vector<entry> entries);

  /// True if there is an attribute of that name, of any type.
  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// Adds or replaces an attribute.
  void set(std::string name, attribute value);
  /// Removes an attribute if it is present.
  void erase(std::string_view name);
  /// The attribute's value; null if it is absent.
  const attribute* find(std::string_view name) const;

  ///@{
  /// The attribute's value. If the attribute is absent: `otherwise`, or no
  /// strings for `get_strings`.
  std::int64_t get_int(std::string_view name, std::int64_t otherwise) const;
  float get_float(std::string_view name, float otherwise) const;
  bool get_bool(std::string_view name, bool otherwise) const;
  std::string get_string(std::string_view name,
                         std::string_view otherwise) const;
  std::vector<std::int64_t> get_ints(std::string_view name,
                                     std::vector<std::int64_t> otherwise) const;
  std::vector<double> get_floats(std::string_view name,
                                 std::vector<double> otherwise) const;
  std::vector<std::string> get_strings(std::string_view name) const;
  ///@}

  /// Entries sorted by name.
  const entry* begin() const { return entries_ ? entries_->data() : nullptr; }
  const entry* end() const { return begin() + size(); }
  std::size_t size() const { return entries_ ? entries_->size() : 0; }
  friend bool operator==(const attribute_map& a, const attribute_map& b);

private:
  std::vector<entry>& own_entries();

  std::shared_ptr<std::vector<entry>> entries_; // sorted; null: none
};

} // namespace troupe

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::dashboard {

/// Makes a frame, as docs/dashboard.md describes it: a head in JSON and arrays
/// of numbers behind it, each at a multiple of eight bytes, little-endian.
class frame_writer {
public:
  void add(std::string_view name, std::span<const std::uint8_t> values);
  void add(std::string_view name, std::span<const std::uint16_t> values);
  void add(std::string_view name, std::span<const std::uint32_t> values);
  void add(std::string_view name, std::span<const double> values);

  /// The whole frame. The head gets the list of arrays.
  std::string finish(nlohmann::json head) const;

private:
  struct array {
    std::string name;
    std::string_view type;
    std::size_t count;
  };

  void put(std::string_view name, std::string_view type, const void* values,
           std::size_t count, std::size_t bytes);

  std::vector<array> arrays_;
  std::string bytes_;
};

} // namespace troupe::dashboard

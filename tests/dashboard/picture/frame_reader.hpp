// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe::test {

/// Reads a frame by its description in docs/dashboard.md, as the page does.
class frame_reader {
public:
  explicit frame_reader(const std::string& frame) : frame_(frame) {
    std::uint32_t length = 0;
    std::memcpy(&length, frame.data(), sizeof length);
    head = nlohmann::json::parse(frame.substr(sizeof length, length));
    first_ = sizeof length + length;
  }

  /// The values of an array. Throws if there is none of that name and type.
  template <class T>
  std::vector<T> values(const std::string& name,
                        const std::string& type) const {
    auto at = first_;
    for (const auto& a : head["arrays"]) {
      const auto count = a["count"].get<std::size_t>();
      const auto text = a["type"].get<std::string>();
      const std::size_t size = text == "u8"    ? 1
                               : text == "u16" ? 2
                               : text == "u32" ? 4
                                               : 8;
      if (a["name"] == name) {
        if (text != type || size != sizeof(T))
          throw std::runtime_error(name + " is of type " + text);
        std::vector<T> found(count);
        std::memcpy(found.data(), frame_.data() + at, count * size);
        return found;
      }
      at += (count * size + 7) / 8 * 8;
    }
    throw std::runtime_error("no array " + name);
  }
  /// Where the arrays begin.
  std::size_t first() const noexcept { return first_; }

  nlohmann::json head;

private:
  std::string frame_;
  std::size_t first_ = 0;
};

} // namespace troupe::test

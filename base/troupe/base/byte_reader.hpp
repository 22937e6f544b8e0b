// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace troupe {

/// Appends the bytes of a number.
template <class T>
void put_bytes(std::string& out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Reads values from bytes of another process, with bounds checks.
class byte_reader {
public:
  /// @param what names the contents in errors: "a value"
  byte_reader(std::string_view bytes, const char* what)
    : rest_(bytes), what_(what) {}

  static error malformed(const char* what, const std::string& how) {
    return error(errc::peer_failure,
                 std::string{what} + " from another process " + how);
  }

  std::string_view take(std::size_t count) {
    if (count > rest_.size())
      throw malformed(what_, "is cut short: " + std::to_string(count)
                               + " bytes expected, "
                               + std::to_string(rest_.size()) + " left");
    auto part = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return part;
  }

  template <class T>
  T get() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  std::size_t left() const noexcept { return rest_.size(); }

  void require_end() const {
    if (!rest_.empty())
      throw malformed(what_, "has " + std::to_string(rest_.size())
                               + " bytes too many");
  }

private:
  std::string_view rest_;
  const char* what_;
};

} // namespace troupe

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

/// Hand-made protobuf messages, so that tests do not depend on the code that
/// they test.
namespace troupe::test {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value > 127; value >>= 7)
    bytes += static_cast<char>(value | 128);
  return bytes + static_cast<char>(value);
}

/// Field of wire type 0.
inline std::string field(unsigned number, std::int64_t value) {
  return varint(number << 3) + varint(static_cast<std::uint64_t>(value));
}

/// Field of wire type 2: a string or a message.
inline std::string field(unsigned number, const std::string& value) {
  return varint(number << 3 | 2) + varint(value.size()) + value;
}

/// A VarDesc of a dense float32 tensor; `dims` is a sequence of fields 2.
inline std::string var(const std::string& name, const std::string& dims) {
  auto tensor = field(1, field(1, 5) + dims);
  return field(1, name) + field(2, field(1, 7) + field(3, tensor));
}

/// A BlockDesc.
inline std::string block(std::int64_t index, std::int64_t parent,
                         const std::string& contents = "") {
  return field(1, index) + field(2, parent) + contents;
}

/// A ProgramDesc of one block.
inline std::string program_of(const std::string& contents) {
  return field(1, block(0, -1, contents));
}

} // namespace troupe::test

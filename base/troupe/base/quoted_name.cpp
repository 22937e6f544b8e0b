// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/quoted_name.hpp>

namespace troupe {

namespace {

constexpr std::size_t max_bytes = 120;

void append_escaped(std::string& to, unsigned char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  to += "\\x";
  to += digits[c >> 4];
  to += digits[c & 15];
}

} // namespace

std::string one_line(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      append_escaped(result, byte);
    else
      result += c;
  }
  return result;
}

std::string quoted_name(std::string_view text) {
  const auto cut = text.size() > max_bytes ? "..." : "";
  return "'" + one_line(text.substr(0, max_bytes)) + cut + "'";
}

} // namespace troupe

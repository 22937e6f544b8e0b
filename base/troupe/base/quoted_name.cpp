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

/// True for characters that end a line, that change the direction of text, so
/// that a terminal would show another order than the bytes have, and for
/// invisible tags.
/// Source: The Unicode Standard, sections 23.2 and 23.9; Annex 9, section 2.
bool changes_layout(unsigned code) {
  return code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e)
         || (code >= 0x2066 && code <= 0x2069)
         || (code >= 0xe0000 && code <= 0xe007f);
}

/// Length in bytes of the first character of a text. 0 if it is a control
/// character, changes the layout or is not valid UTF-8.
/// Source: The Unicode Standard, section 3.9, table 3-7.
std::size_t printable_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned first = byte(0);
  if (first < 0x80)
    return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (text.size() < length)
    return 0;
  unsigned code = first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80)
      return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr unsigned least[] = {0, 0, 0xa0, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  return first >= 0xc2 && first <= 0xf4 && code >= least[length]
             && code <= 0x10ffff && !is_surrogate && !changes_layout(code)
           ? length
           : 0;
}

} // namespace

std::string one_line(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto bytes = printable_bytes(text);
    if (bytes == 0)
      append_escaped(result, static_cast<unsigned char>(text[0]));
    else
      result += text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return result;
}

std::string quoted_name(std::string_view text) {
  const auto cut = text.size() > max_bytes ? "..." : "";
  return "'" + one_line(text.substr(0, max_bytes)) + cut + "'";
}

} // namespace troupe

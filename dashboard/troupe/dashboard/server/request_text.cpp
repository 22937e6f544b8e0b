// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/server/request_text.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <utility>

namespace troupe::dashboard {

namespace {

constexpr std::size_t most_parameters = 16;
constexpr unsigned ports = 65536;

// Not those of <cctype>, which depend on the locale.
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

bool is_letter(char c) {
  return is_upper(c) || (c >= 'a' && c <= 'z');
}

char to_lower(char c) {
  return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Returns the text before `end`, and removes both from `text`.
std::string_view take_until(std::string_view& text, char end) {
  const auto part = text.substr(0, text.find(end));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

std::string_view without_blanks(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back()))
    text.remove_suffix(1);
  return text;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

/// Replaces the escapes %XX. False if one is wrong or a control character.
bool decode(std::string_view text, std::string& decoded) {
  while (!text.empty()) {
    char next = text.front();
    text.remove_prefix(1);
    if (next == '%') {
      unsigned value = 0;
      const auto* const end =
        text.data() + std::min(text.size(), std::size_t{2});
      const auto read = std::from_chars(text.data(), end, value, 16);
      if (text.size() < 2 || read.ec != std::errc{} || read.ptr != end)
        return false;
      next = static_cast<char>(value);
      text.remove_prefix(2);
    }
    if (is_control(next))
      return false;
    decoded += next;
  }
  return true;
}

bool add_parameter(std::string_view text, request_target& to) {
  std::string name, value;
  const auto name_text = take_until(text, '=');
  return decode(name_text, name) && decode(text, value)
         && to.query.size() < most_parameters
         && to.query.emplace(std::move(name), std::move(value)).second;
}

std::optional<unsigned> parse_port(std::string_view text) {
  unsigned port = 0;
  const auto* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, port);
  if (text.empty() || read.ec != std::errc{} || read.ptr != end
      || port >= ports)
    return std::nullopt;
  return port;
}

/// An address in brackets, or a name or address without.
bool is_host(std::string_view text) {
  if (text.starts_with('['))
    return text.size() > 2 && text.ends_with(']')
           && std::all_of(text.begin() + 1, text.end() - 1, [](char c) {
                return is_digit(c) || is_letter(c) || c == ':' || c == '.';
              });
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_digit(c) || is_letter(c) || c == '-' || c == '.' || c == '_';
  });
}

} // namespace

std::optional<request_target> parse_target(std::string_view target) {
  const auto is_plain = [](char c) { return c > ' ' && c < 0x7f && c != '#'; };
  if (!target.starts_with('/')
      || !std::all_of(target.begin(), target.end(), is_plain))
    return std::nullopt;
  request_target parsed{std::string{take_until(target, '?')}};
  while (!target.empty())
    if (!add_parameter(take_until(target, '&'), parsed))
      return std::nullopt;
  return parsed;
}

std::optional<std::string_view> cookie_in(std::string_view header,
                                          std::string_view name) {
  while (!header.empty()) {
    auto value = without_blanks(take_until(header, ';'));
    if (value.find('=') != value.npos && take_until(value, '=') == name)
      return value;
  }
  return std::nullopt;
}

std::optional<std::string_view> bearer_in(std::string_view header) {
  constexpr std::string_view scheme = "bearer ";
  const auto begin = header.substr(0, scheme.size());
  if (!std::equal(begin.begin(), begin.end(), scheme.begin(), scheme.end(),
                  [](char c, char lower) { return to_lower(c) == lower; }))
    return std::nullopt;
  return without_blanks(header.substr(scheme.size()));
}

bool is_in_list(std::string_view list, std::string_view word) {
  while (!list.empty())
    if (without_blanks(take_until(list, ',')) == word)
      return true;
  return false;
}

std::optional<host_and_port> parse_host(std::string_view header) {
  const auto bracket = header.starts_with('[') ? header.find(']') : 0;
  if (bracket == header.npos)
    return std::nullopt;
  const auto colon = header.find(':', bracket);
  const auto host = header.substr(0, colon);
  host_and_port parsed;
  if (!is_host(host))
    return std::nullopt;
  std::transform(host.begin(), host.end(), std::back_inserter(parsed.host),
                 to_lower);
  if (colon != header.npos) {
    parsed.port = parse_port(header.substr(colon + 1));
    if (!parsed.port)
      return std::nullopt;
  }
  return parsed;
}

} // namespace troupe::dashboard

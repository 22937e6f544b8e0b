// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/files/atomic_file.hpp>

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace troupe::trace {

/// A file that is written piece by piece and appears under its name when it is
/// whole. Errors are those of `atomic_file`.
class text_file {
public:
  explicit text_file(std::filesystem::path path) : file_(std::move(path)) {}

  text_file& operator<<(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= most_buffered)
      flush();
    return *this;
  }
  text_file& operator<<(std::integral auto number) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    return *this << std::string_view(digits, end);
  }
  /// A time in microseconds, with all its nanoseconds: "12.034".
  text_file& microseconds(std::uint64_t ns) {
    const auto rest = ns % 1000;
    const char digits[] = {'.', static_cast<char>('0' + rest / 100),
                           static_cast<char>('0' + rest / 10 % 10),
                           static_cast<char>('0' + rest % 10)};
    return *this << ns / 1000 << std::string_view(digits, sizeof digits);
  }
  /// Makes the file visible. Call it once, last.
  void commit() {
    flush();
    file_.commit();
  }

private:
  static constexpr std::size_t most_buffered = std::size_t{1} << 20;

  void flush() {
    file_.write(buffer_);
    buffer_.clear();
  }

  atomic_file file_;
  std::string buffer_;
};

} // namespace troupe::trace

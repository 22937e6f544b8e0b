// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/io/csv.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/input_file.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/kernels/io/reserved_memory.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  auto first = text.find_first_not_of(blanks);
  if (first == text.npos)
    return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Spreadsheets begin UTF-8 files with a byte order mark.
std::string_view without_mark(std::string_view text) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return text.substr(text.starts_with(mark) ? mark.size() : 0);
}

std::string_view unquote(std::string_view field) {
  field = trim(field);
  if (field.size() >= 2 && field.front() == '"' && field.back() == '"')
    return field.substr(1, field.size() - 2);
  return field;
}

/// Position of the comma that ends the first field; the end if there is none.
std::size_t field_end(std::string_view line) {
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == ',' && !quoted)
      return i;
  }
  return line.size();
}

void split(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (;;) {
    auto end = field_end(line);
    fields.push_back(unquote(line.substr(0, end)));
    if (end == line.size())
      return;
    line.remove_prefix(end + 1);
  }
}

std::optional<double> parse_number(std::string_view field) {
  double value = 0;
  if (field.starts_with('+'))
    field.remove_prefix(1);
  const auto* last = field.data() + field.size();
  auto [end, code] = std::from_chars(field.data(), last, value);
  if (code != std::errc{} || end != last)
    return std::nullopt;
  return value;
}

/// True also for numbers that no double holds, such as 1e999.
bool is_number(std::string_view field) {
  double value = 0;
  if (field.starts_with('+'))
    field.remove_prefix(1);
  const auto* last = field.data() + field.size();
  auto [end, code] = std::from_chars(field.data(), last, value);
  return code != std::errc::invalid_argument && end == last;
}

/// Largest distance to which every integer is a double.
constexpr double max_integer = 9007199254740992.0;

/// Reads the lines of one file into columns.
class csv_reader {
public:
  csv_reader(const std::filesystem::path& path, std::string_view text,
             const csv_options& options)
    : path_(path), rest_(text), options_(options) {}

  csv_table read(arena& memory) {
    if (!next_row())
      fail("has no rows");
    read_header();
    choose_label();
    do
      read_row();
    while (next_row());
    return make_table(memory);
  }

private:
  [[noreturn]] void fail(const std::string& why) const {
    throw error(errc::bad_file, path_.string() + ": " + why);
  }

  [[noreturn]] void fail_field(std::size_t column, const char* why) const {
    auto name = column < columns_.size() ? quoted_name(columns_[column])
                                         : std::to_string(column + 1);
    fail("line " + std::to_string(line_) + ", column " + name + ": "
         + quoted_name(fields_[column]) + " " + why);
  }

  /// Splits the next line that is not blank; false at the end.
  bool next_row() {
    while (!rest_.empty()) {
      auto end = std::min(rest_.find('\n'), rest_.size());
      auto line = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++line_;
      if (!trim(line).empty()) {
        split(line, fields_);
        return true;
      }
    }
    return false;
  }

  void read_header() {
    width_ = fields_.size();
    if (std::ranges::any_of(fields_, is_number)) {
      require_numbers();
      return;
    }
    if (std::ranges::all_of(fields_, &std::string_view::empty))
      return;
    columns_.assign(fields_.begin(), fields_.end());
    if (!next_row())
      fail("has a header but no rows");
  }

  /// Of the first line. A row must not be lost as a header for a slip in it.
  void require_numbers() const {
    const auto slip = std::ranges::find_if_not(fields_, is_number);
    if (slip != fields_.end())
      fail_field(static_cast<std::size_t>(slip - fields_.begin()),
                 "is not a number, but other fields of the first line are, "
                 "which no header has");
  }

  void choose_label() {
    label_ = width_ - 1;
    if (options_.label_column.empty())
      return;
    auto found =
      std::find(columns_.begin(), columns_.end(), options_.label_column);
    if (found == columns_.end())
      throw error(errc::not_found, path_.string() + ": no column is named "
                                     + quoted_name(options_.label_column));
    label_ = static_cast<std::size_t>(found - columns_.begin());
  }

  void read_row() {
    if (fields_.size() != width_)
      fail("line " + std::to_string(line_) + ": expected "
           + std::to_string(width_) + " fields, found "
           + std::to_string(fields_.size()));
    reserve_row();
    for (std::size_t column = 0; column < width_; ++column)
      read_field(column);
  }

  /// Room for another row; what grows is held twice for a moment.
  void reserve_row() {
    const auto rows = labels_.size();
    if (rows < labels_.capacity())
      return;
    const auto more = rows + std::max<std::size_t>(rows, 1);
    const auto bytes = sizeof(float) * (width_ - 1) + sizeof(double);
    reserved_.hold((rows + more) * bytes);
    features_.reserve(more * (width_ - 1));
    labels_.reserve(more);
    reserved_.hold(more * bytes);
  }

  void read_field(std::size_t column) {
    auto value = parse_number(fields_[column]);
    if (!value || !std::isfinite(static_cast<float>(*value)))
      fail_field(column, "is not a finite number");
    if (column != label_) {
      features_.push_back(static_cast<float>(*value));
      return;
    }
    if (options_.label_type == dtype::int64
        && (*value != std::trunc(*value) || std::abs(*value) > max_integer))
      fail_field(column, "is not a class number");
    labels_.push_back(*value);
  }

  csv_table make_table(arena& memory) {
    auto rows = static_cast<std::int64_t>(labels_.size());
    auto width = static_cast<std::int64_t>(width_) - 1;
    if (!columns_.empty())
      columns_.erase(columns_.begin() + static_cast<std::ptrdiff_t>(label_));
    csv_table table{std::move(columns_),
                    tensor::make(memory, shape{rows, width}, dtype::float32),
                    tensor::make(memory, shape{rows, 1}, options_.label_type)};
    std::copy(features_.begin(), features_.end(), table.features.data<float>());
    if (options_.label_type == dtype::int64)
      std::copy(labels_.begin(), labels_.end(),
                table.labels.data<std::int64_t>());
    else
      std::copy(labels_.begin(), labels_.end(), table.labels.data<float>());
    return table;
  }

  const std::filesystem::path& path_;
  std::string_view rest_;
  const csv_options& options_;
  std::size_t line_ = 0;
  std::size_t width_ = 0;
  std::size_t label_ = 0;
  std::vector<std::string> columns_;
  std::vector<std::string_view> fields_;
  std::vector<float> features_;
  std::vector<double> labels_;
  reserved_memory reserved_{path_}; // for features and labels
};

} // namespace

csv_table read_csv(const std::filesystem::path& path,
                   const csv_options& options, arena& memory) {
  if (options.label_type != dtype::int64
      && options.label_type != dtype::float32)
    throw error(errc::invalid_argument,
                "labels of a .csv file are int64 or float32, not "
                  + std::string(to_string(options.label_type)));
  input_file file(path);
  reserved_memory reserved(path);
  reserved.hold(file.size());
  const std::string text = file.read_string(file.size());
  return csv_reader(path, without_mark(text), options).read(memory);
}

} // namespace troupe

// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/io/csv.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/files/input_file.hpp>
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

/// Takes the fields off a line one by one. A line may have as many fields as
/// bytes, so nothing is kept of them.
class field_cursor {
public:
  explicit field_cursor(std::string_view line) : rest_(line) {}

  /// False behind the last field.
  bool next(std::string_view& field) {
    if (ended_)
      return false;
    const auto end = field_end(rest_);
    field = unquote(rest_.substr(0, end));
    ended_ = end == rest_.size();
    rest_.remove_prefix(ended_ ? end : end + 1);
    return true;
  }

private:
  std::string_view rest_;
  bool ended_ = false;
};

std::size_t count_fields(std::string_view line) {
  std::size_t count = 0;
  field_cursor fields(line);
  for (std::string_view field; fields.next(field);)
    ++count;
  return count;
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

/// Also true for numbers that do not fit a double, such as 1e999.
bool is_number(std::string_view field) {
  double value = 0;
  if (field.starts_with('+'))
    field.remove_prefix(1);
  const auto* last = field.data() + field.size();
  auto [end, code] = std::from_chars(field.data(), last, value);
  return code != std::errc::invalid_argument && end == last;
}

/// Up to this magnitude, every integer is a double.
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

  [[noreturn]] void fail_field(std::size_t column, std::string_view field,
                               const char* why) const {
    require_width(); // which is the reason, if it differs
    auto name = column < columns_.size() ? quoted_name(columns_[column])
                                         : std::to_string(column + 1);
    fail("line " + std::to_string(line_) + ", column " + name + ": "
         + quoted_name(field) + " " + why);
  }

  void require_width() const {
    if (const auto found = count_fields(row_); found != width_)
      fail("line " + std::to_string(line_) + ": expected "
           + std::to_string(width_) + " fields, found "
           + std::to_string(found));
  }

  /// Finds the next line that is not blank; false at the end of the file.
  bool next_row() {
    while (!rest_.empty()) {
      auto end = std::min(rest_.find('\n'), rest_.size());
      auto line = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++line_;
      if (!trim(line).empty()) {
        row_ = line;
        return true;
      }
    }
    return false;
  }

  /// A number among the fields of the first line makes it a row; all must be
  /// numbers then, because a row must not be lost as a header for a slip in it.
  void read_header() {
    std::size_t numbers = 0, slip = 0; // the first that is no number
    std::string_view field, slipped;
    bool has_text = false;
    for (field_cursor fields(row_); fields.next(field); ++width_) {
      has_text = has_text || !field.empty();
      if (is_number(field)) {
        ++numbers;
      } else if (numbers == width_) {
        slip = width_;
        slipped = field;
      }
    }
    if (numbers > 0 && numbers < width_)
      fail_field(slip, slipped,
                 "is not a number, but other fields of the first line are, "
                 "which no header has");
    if (numbers == 0 && has_text)
      take_names();
  }

  void take_names() {
    names_reserved_.hold(width_ * sizeof(std::string) + row_.size());
    columns_.reserve(width_);
    std::string_view field;
    for (field_cursor fields(row_); fields.next(field);)
      columns_.emplace_back(field);
    if (!next_row())
      fail("has a header but no rows");
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
    reserve_row();
    std::size_t column = 0;
    std::string_view field;
    for (field_cursor fields(row_); fields.next(field); ++column) {
      if (column == width_)
        require_width(); // throws
      read_field(column, field);
    }
    if (column < width_)
      require_width(); // throws
  }

  /// Reserves memory for another row. While a vector grows, it is held twice.
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

  void read_field(std::size_t column, std::string_view field) {
    auto value = parse_number(field);
    if (!value || !std::isfinite(static_cast<float>(*value)))
      fail_field(column, field, "is not a finite number");
    if (column != label_) {
      features_.push_back(static_cast<float>(*value));
      return;
    }
    if (options_.label_type == dtype::int64
        && (*value != std::trunc(*value) || std::abs(*value) > max_integer))
      fail_field(column, field, "is not a class number");
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
  std::string_view row_; // the line that is read
  std::vector<float> features_;
  std::vector<double> labels_;
  reserved_memory reserved_{path_}; // for features and labels
  reserved_memory names_reserved_{path_};
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
  return naming_file(path.string(), [&] {
    return csv_reader(path, without_mark(text), options).read(memory);
  });
}

} // namespace troupe

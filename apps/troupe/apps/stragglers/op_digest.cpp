// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/stragglers/op_digest.hpp>

#include <troupe/trace/analysis/statistics.hpp>

#include <algorithm>
#include <iomanip>
#include <map>
#include <sstream>
#include <utility>

namespace troupe::apps {

namespace {

/// A note may have 256 KiB.
constexpr std::size_t longest_text = 250'000;

/// Joins lines while the text is not too long.
class limited_text {
public:
  explicit limited_text(std::string head) : text_(std::move(head)) {}
  void add(const std::string& line) {
    is_full_ = is_full_ || text_.size() + line.size() + 1 > longest_text;
    if (!is_full_)
      text_ += '\n' + line;
  }
  const std::string& text() const noexcept { return text_; }

private:
  std::string text_;
  bool is_full_ = false;
};

void write(std::ostream& out, const op_key& op) {
  out << std::quoted(op.type) << ' ' << std::quoted(op.output);
}

std::istream& read(std::istream& in, op_key& op) {
  return in >> std::quoted(op.type) >> std::quoted(op.output);
}

std::optional<op_digest::row> read_row(std::istream& in) {
  constexpr std::size_t most_steps = 4096;
  op_digest::row row;
  std::size_t steps = 0;
  if (!read(in, row.op) || !(in >> steps) || steps > most_steps)
    return std::nullopt;
  row.ms.resize(steps);
  for (auto& ms : row.ms)
    if (!(in >> ms))
      return std::nullopt;
  return row;
}

} // namespace

double median_ms(const op_digest::row& row) {
  return trace::quantile({row.ms.begin(), row.ms.end()}, 0.5);
}

std::string write_digest(const op_digest& digest) {
  std::vector<std::pair<double, const op_digest::row*>> rows;
  for (auto& row : digest.rows)
    rows.emplace_back(-median_ms(row), &row);
  std::ranges::stable_sort(rows, {}, [](auto& r) { return r.first; });
  std::ostringstream head;
  head << digest.preempted << ' ' << digest.window;
  limited_text all(head.str());
  for (auto& [ms, row] : rows) {
    std::ostringstream line;
    write(line, row->op);
    line << ' ' << row->ms.size();
    for (auto each : row->ms)
      line << ' ' << each;
    all.add(line.str());
  }
  return all.text();
}

std::optional<op_digest> read_digest(const std::string& text) {
  std::istringstream in(text);
  op_digest digest;
  if (!(in >> digest.preempted >> digest.window))
    return std::nullopt;
  while (!(in >> std::ws).eof()) {
    auto row = read_row(in);
    if (!row)
      return std::nullopt;
    digest.rows.push_back(*std::move(row));
  }
  return digest;
}

std::vector<fastest_rank> fastest_of(const std::vector<op_digest>& window) {
  std::map<op_key, fastest_rank> all;
  for (std::size_t rank = 0; rank < window.size(); ++rank)
    for (auto& row : window[rank].rows) {
      const fastest_rank own{row.op, rank, static_cast<float>(median_ms(row))};
      const auto [of, is_new] = all.emplace(row.op, own);
      if (!is_new && own.ms < of->second.ms)
        of->second = own;
    }
  std::vector<fastest_rank> found;
  for (auto& [op, fastest] : all)
    found.push_back(fastest);
  return found;
}

std::string write_fastest(const std::vector<fastest_rank>& all) {
  auto rows = all;
  std::ranges::stable_sort(rows, std::ranges::greater{}, &fastest_rank::ms);
  limited_text text("fastest");
  for (auto& row : rows) {
    std::ostringstream line;
    write(line, row.op);
    line << ' ' << row.rank << ' ' << row.ms;
    text.add(line.str());
  }
  return text.text();
}

std::optional<std::vector<fastest_rank>> read_fastest(const std::string& text) {
  std::istringstream in(text);
  std::string head;
  if (!(in >> head) || head != "fastest")
    return std::nullopt;
  std::vector<fastest_rank> all;
  while (!(in >> std::ws).eof()) {
    auto& row = all.emplace_back();
    if (!read(in, row.op) || !(in >> row.rank >> row.ms))
      return std::nullopt;
  }
  return all;
}

} // namespace troupe::apps

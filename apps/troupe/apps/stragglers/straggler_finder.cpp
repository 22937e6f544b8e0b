// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/stragglers/straggler_finder.hpp>

#include <troupe/apps/printed.hpp>
#include <troupe/trace/analysis/statistics.hpp>

#include <algorithm>
#include <sstream>
#include <utility>

namespace troupe::apps {

namespace {

/// Smaller differences are not worth a line, whatever their significance.
constexpr double least_factor = 1.1;
constexpr double most_likely = 1e-4;
/// Types of ops with a smaller share of a rank's time are not compared.
constexpr double least_share = 0.01;
constexpr double most_preempted = 0.05;
/// So many types make a rank: fewer do not say whether it is slow in all ops.
constexpr std::size_t least_types = 3;

/// The time of one type on a rank and on all others.
struct comparison {
  std::string type;
  std::vector<double> own, others;
  double own_ms = 0, others_ms = 0;
  double factor() const { return own_ms / others_ms; }
};

const op_digest::row* find(const op_digest& of, const std::string& type) {
  const auto found = std::ranges::find(of.rows, type, &op_digest::row::type);
  return found == of.rows.end() ? nullptr : &*found;
}

std::vector<double> times_of(const op_digest::row& row) {
  return {row.ms.begin(), row.ms.end()};
}

double total_ms(const op_digest& of) {
  double sum = 0;
  for (auto& row : of.rows)
    sum += trace::quantile(times_of(row), 0.5);
  return sum;
}

/// Types that all ranks have, and that take long enough.
std::vector<comparison> compare(const std::vector<op_digest>& all,
                                std::size_t rank) {
  std::vector<comparison> found;
  const auto least = least_share * total_ms(all[rank]);
  for (auto& row : all[rank].rows) {
    comparison c{.type = row.type, .own = times_of(row), .others = {}};
    bool have_all = true;
    for (std::size_t r = 0; r < all.size(); ++r) {
      const auto* other = find(all[r], row.type);
      have_all &= other != nullptr;
      if (r != rank && other)
        c.others.insert(c.others.end(), other->ms.begin(), other->ms.end());
    }
    c.own_ms = trace::quantile(c.own, 0.5);
    c.others_ms = trace::quantile(c.others, 0.5);
    if (have_all && c.others_ms > 0 && c.own_ms >= least)
      found.push_back(std::move(c));
  }
  return found;
}

double middle_factor(const std::vector<comparison>& all) {
  if (all.size() < least_types)
    return 1;
  std::vector<double> factors;
  for (auto& c : all)
    factors.push_back(c.factor());
  return trace::quantile(std::move(factors), 0.5);
}

/// True if `own`, divided by `scale`, is more than `others`.
bool is_more(std::vector<double> own, const std::vector<double>& others,
             double scale, std::size_t comparisons) {
  for (auto& ms : own)
    ms /= scale;
  return trace::rank_test(own, others) * static_cast<double>(comparisons)
         < most_likely;
}

/// Sums over all types, by step; of ranks one after the other.
std::vector<double> sums_of(const std::vector<op_digest>& all,
                            std::size_t begin, std::size_t end) {
  std::vector<double> sums;
  for (auto r = begin; r < end; ++r) {
    const auto first = sums.size();
    for (auto& row : all[r].rows) {
      sums.resize(std::max(sums.size(), first + row.ms.size()));
      for (std::size_t i = 0; i < row.ms.size(); ++i)
        sums[first + i] += row.ms[i];
    }
  }
  return sums;
}

} // namespace

// -- digests ------------------------------------------------------------------

std::string write_digest(const op_digest& digest) {
  std::ostringstream text;
  text << digest.preempted << ' ' << digest.rows.size();
  for (auto& row : digest.rows) {
    text << '\n' << row.type << ' ' << row.ms.size();
    for (auto ms : row.ms)
      text << ' ' << ms;
  }
  return text.str();
}

std::optional<op_digest> read_digest(const std::string& text) {
  constexpr std::size_t most_rows = 4096, most_steps = 4096;
  std::istringstream in(text);
  op_digest digest;
  std::size_t rows = 0;
  if (!(in >> digest.preempted >> rows) || rows > most_rows)
    return std::nullopt;
  for (; rows > 0; --rows) {
    auto& row = digest.rows.emplace_back();
    std::size_t steps = 0;
    if (!(in >> row.type >> steps) || steps > most_steps)
      return std::nullopt;
    row.ms.resize(steps);
    for (auto& ms : row.ms)
      if (!(in >> ms))
        return std::nullopt;
  }
  return digest;
}

std::string text_of(const straggler& found, std::size_t ranks) {
  const auto others =
    ranks == 2 ? "on rank " + std::to_string(1 - found.rank) : "on the others";
  const auto what =
    found.type.empty() ? std::string{"all ops take"} : found.type + " takes";
  return "rank " + std::to_string(found.rank) + " is slow: " + what
         + printed(" %.2f times as long as ", found.factor) + others
         + printed(" (%.2f against %.2f ms per step over %zu steps)", found.ms,
                   found.others_ms, found.steps);
}

// -- windows ------------------------------------------------------------------

std::vector<straggler>
straggler_finder::differences(const std::vector<op_digest>& all,
                              std::size_t rank) const {
  const auto compared = compare(all, rank);
  const auto comparisons = (compared.size() + 1) * ranks_;
  const auto middle = middle_factor(compared);
  std::vector<straggler> found;
  if (middle >= least_factor && all[rank].preempted <= most_preempted) {
    const auto own = sums_of(all, rank, rank + 1);
    auto others = sums_of(all, 0, rank);
    for (auto ms : sums_of(all, rank + 1, all.size()))
      others.push_back(ms);
    if (is_more(own, others, 1, comparisons))
      found.push_back({rank,
                       {},
                       middle,
                       trace::quantile(own, 0.5),
                       trace::quantile(others, 0.5),
                       own.size()});
  }
  for (auto& c : compared)
    if (c.factor() >= least_factor * std::max(middle, 1.0)
        && is_more(c.own, c.others, std::max(middle, 1.0), comparisons))
      found.push_back(
        {rank, c.type, c.factor(), c.own_ms, c.others_ms, c.own.size()});
  return found;
}

std::vector<straggler>
straggler_finder::add(const std::vector<op_digest>& window) {
  std::vector<straggler> named;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    std::vector<suspect> now;
    for (auto& found : differences(window, rank)) {
      const auto before =
        std::ranges::find(suspects_[rank], found.type, &suspect::type);
      const bool is_again = before != suspects_[rank].end();
      if (is_again && !before->is_told)
        named.push_back(found);
      now.push_back({found.type, is_again});
    }
    suspects_[rank] = std::move(now);
  }
  return named;
}

} // namespace troupe::apps

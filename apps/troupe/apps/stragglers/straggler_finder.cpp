// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/stragglers/straggler_finder.hpp>

#include <troupe/apps/printed.hpp>
#include <troupe/apps/trace/traced_run.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/trace/analysis/statistics.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace troupe::apps {

namespace {

/// Smaller differences are not worth a line, whatever their significance.
constexpr double least_factor = 1.1;
/// Of the fastest runs, which are few.
constexpr double least_fast_factor = 1.05;
/// Of a window; several in a row must agree. Eight runs on each of two ranks
/// can give as much.
constexpr double most_likely = 0.006;
/// The share of the slowest runs that the rank test leaves out, on both sides:
/// a burst of load makes some runs of either side longer, whatever the op.
constexpr double left_out = 0.3;
/// Ops with a smaller share of a rank's time are not named, nor types; nor
/// those that are so short that they do not notice when they lose their core.
constexpr double least_share = 0.01;
constexpr double least_ms = op_times::least_ns / ns_per_ms;
constexpr double most_preempted = 0.15;
/// Types and ops that take less than so many times as long can do so because
/// other programs have filled the caches; or so much longer, which is what it
/// takes to fetch a few MB again.
constexpr double cold_factor = 1.5;
constexpr double cold_ms = 0.25;
/// So many ops say whether what they have in common is slow: fewer do not.
constexpr std::size_t least_ops = 3;
/// Of an op in a window, on each rank.
constexpr std::size_t least_times = 5;
/// What stands out is so many standard deviations off.
constexpr double least_deviations = 3;
/// The quantile of an op's times that is compared.
constexpr double compared = 0.25;
/// Windows after which their weight in the variance is 1 / e.
constexpr double memory = 50;

/// An op on a rank and on all others.
struct comparison {
  op_key op;
  std::vector<double> own, others;
  double own_ms = 0, others_ms = 0;
  double own_least = 0, others_least = 0; // of the fastest runs
  double factor() const { return own_ms / others_ms; }
};

using comparisons = std::vector<const comparison*>;
using row_index = std::map<op_key, const op_digest::row*>;

std::vector<row_index> index_of(const std::vector<op_digest>& window) {
  std::vector<row_index> all;
  for (auto& digest : window) {
    auto& rows = all.emplace_back();
    for (auto& row : digest.rows)
      if (row.ms.size() >= least_times)
        rows.emplace(row.op, &row);
  }
  return all;
}

/// Ops that all ranks have.
std::vector<comparison> compare(const std::vector<row_index>& ranks,
                                std::size_t rank) {
  std::vector<comparison> found;
  for (auto& [op, row] : ranks[rank]) {
    comparison c{
      .op = op, .own = {row->ms.begin(), row->ms.end()}, .others = {}};
    bool have_all = true;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const auto other = ranks[r].find(op);
      have_all &= other != ranks[r].end();
      if (r != rank && other != ranks[r].end())
        c.others.insert(c.others.end(), other->second->ms.begin(),
                        other->second->ms.end());
    }
    c.own_ms = trace::quantile(c.own, compared);
    c.others_ms = trace::quantile(c.others, compared);
    c.own_least = trace::quantile(c.own, 0);
    c.others_least = trace::quantile(c.others, 0);
    if (have_all && c.others_ms > 0)
      found.push_back(std::move(c));
  }
  return found;
}

double sum_of(const comparisons& all, double comparison::*ms) {
  double sum = 0;
  for (auto* c : all)
    sum += c->*ms;
  return sum;
}

double factor_of(const comparisons& all, double quantile) {
  std::vector<double> factors;
  for (auto* c : all)
    factors.push_back(c->factor());
  return trace::quantile(std::move(factors), quantile);
}

double middle_factor(const comparisons& all) {
  return factor_of(all, 0.5);
}

/// Of what several ops have in common, at least 1.
double common_factor(const comparisons& all) {
  return all.size() < least_ops ? 1 : std::max(1.0, middle_factor(all));
}

std::vector<double> without_slowest(std::vector<double> times) {
  std::ranges::sort(times);
  times.resize(
    times.size()
    - static_cast<std::size_t>(left_out * static_cast<double>(times.size())));
  return times;
}

/// True if three quarters of the ops, divided by `scale`, take longer than on
/// other ranks. Each op counts relative to its time on the others.
bool take_longer(const comparisons& all, double scale) {
  if (factor_of(all, 0.25) < least_factor * scale)
    return false;
  std::vector<double> own, others;
  for (auto* c : all) {
    for (auto ms : c->own)
      own.push_back(ms / c->others_ms / scale);
    for (auto ms : c->others)
      others.push_back(ms / c->others_ms);
  }
  return trace::quantile(own, 0.25) > trace::quantile(others, 0.5)
         && trace::rank_test(without_slowest(own), without_slowest(others))
              < most_likely;
}

/// What is slower on one rank.
class rank_comparison {
public:
  rank_comparison(const std::vector<row_index>& ranks, std::size_t rank,
                  bool is_preempted)
    : rank_(rank), is_preempted_(is_preempted), all_(compare(ranks, rank)) {
    double own_ms = 0, others_ms = 0;
    for (auto& c : all_) {
      own_ms += c.own_ms;
      others_ms += c.others_ms;
    }
    const auto least = std::max(least_ms, least_share * own_ms);
    for (auto& c : all_) {
      by_type_[c.op.type].push_back(&c);
      if (c.own_ms >= least)
        long_.push_back(&c);
      if (c.others_ms >= least_share * others_ms)
        usual_.push_back(&c);
    }
    std::erase_if(by_type_, [least](auto& type) {
      return sum_of(type.second, &comparison::own_ms) < least;
    });
  }

  struct finding {
    straggler what;
    slowness_evidence seen; ///< beyond that of what is larger
    bool is_slow = false;
  };
  /// The rank, its types and its ops: those of which enough is known.
  std::vector<finding> findings() const {
    std::vector<finding> found;
    const auto of_rank = common_factor(usual_);
    if (!is_preempted_ && usual_.size() >= least_ops)
      found.push_back(judged({}, usual_, 1));
    for (auto& [type, ops] : by_type_) {
      bool is_slow = false;
      if (ops.size() >= least_ops) {
        found.push_back(judged({type, {}}, ops, of_rank));
        is_slow = found.back().is_slow;
      }
      // A type that is not slow is not 1 exactly: to divide by its noise would
      // hide ops.
      const auto of_type = is_slow ? middle_factor(ops) : 1.0;
      for (auto* c : ops)
        if (std::ranges::find(long_, c) != long_.end()) {
          found.push_back(judged(c->op, {c}, std::max(of_rank, of_type)));
          found.back().seen.is_covered |= is_slow;
        }
    }
    return found;
  }

private:
  finding judged(const op_key& what, const comparisons& ops,
                 double scale) const {
    const auto described = this->described(what, ops);
    const auto factor = middle_factor(ops) / scale;
    const auto longer_ms = described.ms - described.others_ms * scale;
    const bool may_be_cold =
      factor < cold_factor
      || longer_ms < cold_ms * static_cast<double>(ops.size());
    return {described,
            {std::log(factor), sum_of(ops, &comparison::own_least) / scale,
             sum_of(ops, &comparison::others_least),
             is_preempted_ && may_be_cold},
            take_longer(ops, scale)};
  }
  straggler described(const op_key& what, const comparisons& ops) const {
    const auto own_ms = sum_of(ops, &comparison::own_ms),
               others_ms = sum_of(ops, &comparison::others_ms);
    return {rank_,
            what.type,
            what.output,
            own_ms / others_ms, // as the line has them
            own_ms,
            others_ms,
            ops.front()->own.size()};
  }

  std::size_t rank_;
  bool is_preempted_;
  std::vector<comparison> all_;
  comparisons long_; // those that can be named
  // Those that are long on the others: what is long here may be so because it
  // is slow, and then says nothing of the rank.
  comparisons usual_;
  std::map<std::string, comparisons> by_type_;
};

/// "1.57 against 1.31 ms"; "20.09 ms against 3.4 us" if that would be 0.00 ms.
std::string times_text(double ms, double others_ms) {
  constexpr double least_ms = 0.01;
  return ms >= least_ms && others_ms >= least_ms
           ? printed("%.2f against %.2f ms", ms, others_ms)
           : time_text(ms * ns_per_ms) + " against "
               + time_text(others_ms * ns_per_ms);
}

} // namespace

std::string text_of(const straggler& found, std::size_t ranks,
                    const std::string& op) {
  const auto others =
    ranks == 2 ? "on rank " + std::to_string(1 - found.rank) : "on the others";
  const auto what = found.type.empty() ? std::string{"all ops take"}
                    : found.output.empty()
                      ? "ops of type " + found.type + " take"
                      : op + " takes";
  return "rank " + std::to_string(found.rank) + " is slow: " + what
         + printed(found.factor < 100 ? " %.2f times as long as "
                                      : " %.0f times as long as ",
                   found.factor)
         + others + " (" + times_text(found.ms, found.others_ms)
         + printed(", lower quartiles of %zu runs)", found.runs);
}

// -- windows ------------------------------------------------------------------

/// On two ranks, each window has one excess above 0. The others say the same,
/// or that another rank is slow.
void straggler_finder::variation::add(double excess) {
  if (excess < 0)
    return;
  windows = std::min(windows + 1, memory);
  variance += (excess * excess - variance) / windows;
}

straggler_finder::slow_row::slow_row(std::optional<double> before) {
  if (before)
    skipped_.push_back(*before);
}

bool straggler_finder::slow_row::add(const slowness_evidence& window,
                                     const variation& usual) {
  has_skipped_ = false;
  remember(window);
  if (excesses_.size() < most_windows)
    excesses_.push_back(window.excess);
  return stands_out(usual) && !window.is_covered
         && !std::exchange(is_told_, true);
}

void straggler_finder::slow_row::remember(const slowness_evidence& window) {
  if (latest_.size() > least_windows)
    latest_.pop_front();
  latest_.push_back(window);
}

bool straggler_finder::slow_row::is_never_fast() const {
  const auto least = [this](double slowness_evidence::*ms) {
    return std::ranges::min(latest_, {}, ms).*ms;
  };
  return least(&slowness_evidence::least)
         >= least_fast_factor * least(&slowness_evidence::others_least);
}

bool straggler_finder::slow_row::stands_out(const variation& usual) const {
  if (excesses_.size() < least_windows || !is_never_fast())
    return false;
  return excesses_.size() >= most_windows
         || trace::quantile(excesses_, 0.5)
              >= least_deviations * std::sqrt(usual.variance);
}

bool straggler_finder::slow_row::skip(const slowness_evidence* window,
                                      variation& usual) {
  if (window) {
    remember(*window);
    skipped_.push_back(window->excess);
  }
  if (!std::exchange(has_skipped_, true))
    return false;
  if (!is_told_)
    std::ranges::for_each(excesses_, [&](double one) { usual.add(one); });
  std::ranges::for_each(skipped_, [&](double one) { usual.add(one); });
  return true;
}

/// The window before a row may be the one that disagrees.
std::optional<double>
straggler_finder::rank_rows::take_before(const op_key& k) {
  const auto found = before.extract(k);
  return found.empty() ? std::nullopt : std::optional{found.mapped()};
}

std::vector<straggler>
straggler_finder::add(const std::vector<op_digest>& window) {
  const auto ops = index_of(window);
  std::vector<straggler> named;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    auto& [rows, before] = rows_[rank];
    std::set<op_key> looked_at;
    const rank_comparison all{ops, rank,
                              window[rank].preempted > most_preempted};
    for (auto& found : all.findings()) {
      const op_key what{found.what.type, found.what.output};
      auto& usual = usual_[what];
      looked_at.insert(what);
      auto row = rows.find(what);
      if (found.is_slow) {
        if (row == rows.end())
          row = rows.emplace(what, rows_[rank].take_before(what)).first;
        if (row->second.add(found.seen, usual))
          named.push_back(found.what);
      } else if (row == rows.end()) {
        if (const auto earlier = rows_[rank].take_before(what))
          usual.add(*earlier);
        before.emplace(what, found.seen.excess);
      } else if (row->second.skip(&found.seen, usual)) {
        rows.erase(row);
      }
    }
    for (auto row = rows.begin(); row != rows.end();)
      if (!looked_at.contains(row->first)
          && row->second.skip(nullptr, usual_[row->first]))
        row = rows.erase(row);
      else
        ++row;
  }
  return named;
}

} // namespace troupe::apps

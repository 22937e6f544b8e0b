// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/cost_table.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/trace/analysis/readiness.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace troupe::trace {

namespace {

[[noreturn]] void refuse_change(std::string_view entry) {
  throw error(errc::invalid_argument,
              quoted_name(entry)
                + ": must be TYPE=x0.5, TYPE=+2ms, TYPE=-2ms or TYPE=100us");
}

/// Larger ones are no question, and their sums would overflow.
constexpr double most_factor = 1e6, most_seconds = 1e6;

void require_at_most(double most, double value, const char* what,
                     std::string_view entry) {
  if (value > most)
    throw error(errc::invalid_argument,
                quoted_name(entry) + ": must be at most " + what);
}

/// A number that is not negative; what follows it goes to `rest`.
double read_number(std::string_view text, std::string_view& rest,
                   std::string_view entry) {
  double value = 0;
  const auto [end, failure] =
    std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || !std::isfinite(value) || text.starts_with('-'))
    refuse_change(entry);
  rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return value;
}

double read_time(std::string_view text, std::string_view entry) {
  constexpr std::array<std::pair<std::string_view, double>, 4> units{
    {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
  std::string_view unit;
  const auto number = read_number(text, unit, entry);
  for (const auto& [name, ns] : units)
    if (unit == name) {
      require_at_most(most_seconds * 1e9, number * ns, "1000000s", entry);
      return number * ns;
    }
  refuse_change(entry);
}

using cost_key = std::tuple<std::string_view, std::string_view, std::uint32_t>;

cost_key key_of(const handle_info& h) {
  return {h.type, h.shape, h.device};
}

/// Bytes that ops allocate, by op, in all steps from `first` on.
std::vector<double> allocated_bytes(std::span<const process_trace> parts,
                                    std::size_t handles, std::uint32_t first) {
  std::vector<double> bytes(handles);
  for (const auto& part : parts)
    for (const auto& e : part.events)
      if (e.kind == event_kind::allocation && e.from < handles
          && e.step >= first)
        bytes[e.from] += static_cast<double>(e.amount);
  return bytes;
}

} // namespace

double cost_change::of(double ns) const {
  switch (how) {
  case kind::factor: return ns * value;
  case kind::added: return std::max(0.0, ns + value);
  case kind::fixed: return value;
  }
  return ns;
}

cost_change parse_cost_change(std::string_view entry) {
  const auto equals = entry.find('=');
  if (equals == entry.npos || equals == 0 || equals + 1 == entry.size())
    refuse_change(entry);
  cost_change change;
  change.type = entry.substr(0, equals);
  const auto value = entry.substr(equals + 1);
  switch (value.front()) {
  case 'x': {
    std::string_view rest;
    change.value = read_number(value.substr(1), rest, entry);
    if (!rest.empty())
      refuse_change(entry);
    require_at_most(most_factor, change.value, "x1000000", entry);
    break;
  }
  case '+':
  case '-':
    change.how = cost_change::kind::added;
    change.value = read_time(value.substr(1), entry);
    if (value.front() == '-')
      change.value = -change.value;
    break;
  default:
    change.how = cost_change::kind::fixed;
    change.value = read_time(value, entry);
  }
  return change;
}

cost_table cost_table::measure(std::span<const process_trace> parts,
                               const timeline& all, const op_graph& graph) {
  struct sums {
    std::vector<double> ns;
    double bytes = 0;
  };
  const auto& handles = graph.graph().handles;
  const auto steady = all.steady_steps();
  auto first = steady.empty() ? 0 : steady.front().step;
  if (std::ranges::none_of(all.runs(),
                           [&](auto& r) { return r.step >= first; }))
    first = 0;
  std::map<cost_key, sums> found;
  for (const auto& r : all.runs())
    if (r.step >= first)
      found[key_of(handles[r.op])].ns.push_back(
        static_cast<double>(own_time(all, graph, r)));
  const auto bytes = allocated_bytes(parts, handles.size(), first);
  for (handle_id op = 0; op < handles.size(); ++op)
    if (bytes[op] > 0)
      if (const auto at = found.find(key_of(handles[op])); at != found.end())
        at->second.bytes += bytes[op];

  std::vector<std::pair<double, const std::pair<const cost_key, sums>*>> order;
  for (const auto& entry : found)
    order.emplace_back(
      std::accumulate(entry.second.ns.begin(), entry.second.ns.end(), 0.0),
      &entry);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [](const auto& o) { return o.first; });
  cost_table table;
  std::map<cost_key, std::size_t> row_of;
  for (const auto& [total, entry] : order) {
    const auto& [key, s] = *entry;
    const auto& [type, shapes, device] = key;
    row_of[key] = table.rows_.size();
    const auto& devices = graph.graph().devices;
    table.rows_.push_back({std::string{type}, std::string{shapes},
                           device < devices.size() ? devices[device] : "?",
                           s.ns.size(), spread_of(s.ns),
                           s.bytes / static_cast<double>(s.ns.size())});
  }
  table.row_of_.assign(handles.size(), table.rows_.size());
  for (handle_id op = 0; op < handles.size(); ++op)
    if (handles[op].is_op)
      if (const auto at = row_of.find(key_of(handles[op])); at != row_of.end())
        table.row_of_[op] = at->second;
  return table;
}

const op_cost* cost_table::find(handle_id op) const {
  return op < row_of_.size() && row_of_[op] < rows_.size() ? &rows_[row_of_[op]]
                                                           : nullptr;
}

cost_table cost_table::changed(std::span<const cost_change> changes) const {
  auto made = *this;
  for (const auto& change : changes) {
    bool is_known = false;
    for (auto& row : made.rows_)
      if (change.type == "*" || row.type == change.type) {
        row.ns = {change.of(row.ns.quarter), change.of(row.ns.median),
                  change.of(row.ns.three_quarters)};
        is_known = true;
      }
    if (!is_known)
      throw error(errc::not_found,
                  "no op of type " + quoted_name(change.type) + " has run");
  }
  return made;
}

} // namespace troupe::trace

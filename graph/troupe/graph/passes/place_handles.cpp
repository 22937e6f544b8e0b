// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/passes/place_handles.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/ssa/ssa_edges.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

namespace troupe::graph {

namespace {

/// `*` goes back to where it stood last, and takes one character more.
bool fits(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0;
  std::optional<std::pair<std::size_t, std::size_t>> star;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star.emplace(++p, n);
    } else if (p < pattern.size()
               && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star) {
      p = star->first;
      n = ++star->second;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

bool can_move(const op_handle& op) {
  return op.kind == op_kind::computation || op.kind == op_kind::scale_loss_grad;
}

class handle_mover {
public:
  handle_mover(ssa_graph g, std::span<const handle_place> table,
               const std::vector<std::uint32_t>& places)
    : graph_(std::move(g)), table_(table), places_(places),
      is_used_(table.size()), has_fitted_(table.size()) {}

  ssa_graph move();

private:
  template <class CanMove>
  std::optional<std::uint32_t> rank_of(handle_id id, CanMove can_move);
  void move_op(op_handle& op, std::uint32_t rank);
  void move_variables();
  std::vector<bool> storages_that_stay() const;
  void require_all_used() const;
  std::uint32_t place_of(std::uint32_t device) const {
    return places_.empty() ? 0 : places_[device];
  }
  bool is_first_of_place(std::uint32_t device) const;
  void wait_for_counts();

  ssa_graph graph_;
  std::span<const handle_place> table_;
  const std::vector<std::uint32_t>& places_;
  std::vector<bool> is_used_, has_fitted_; // by line of the table
};

/// Where the table lets a handle go.
/// @param can_move tells whether it can go to a rank
template <class CanMove>
std::optional<std::uint32_t> handle_mover::rank_of(handle_id id,
                                                   CanMove can_move) {
  const auto name = handle_name(graph_, id);
  for (std::size_t i = 0; i < table_.size(); ++i)
    if (fits(table_[i].pattern, name)) {
      has_fitted_[i] = true;
      if (!can_move(table_[i].rank))
        return std::nullopt;
      is_used_[i] = true;
      return table_[i].rank;
    }
  return std::nullopt;
}

void handle_mover::move_op(op_handle& op, std::uint32_t rank) {
  if (op.device == rank)
    return;
  if (place_of(op.device) != place_of(rank) && !is_first_of_place(rank))
    throw error{errc::invalid_argument,
                handle_name(graph_, op.id) + " cannot move to "
                  + to_string(graph_.devices[rank])
                  + ": of another process, only the first device will do"};
  op.moved_from = static_cast<std::uint16_t>(op.device);
  op.device = rank;
}

bool handle_mover::is_first_of_place(std::uint32_t device) const {
  return std::ranges::find(places_, place_of(device)) - places_.begin()
         == static_cast<std::ptrdiff_t>(device);
}

/// Moved ops wait for the count of samples in their new place: a process knows
/// the shards of others only afterwards.
void handle_mover::wait_for_counts() {
  std::vector<handle_id> counts(graph_.devices.size(), no_handle);
  for (auto& o : graph_.ops)
    if (o.kind == op_kind::count_samples)
      counts[o.device] = o.id;
  std::erase_if(graph_.edges, [&](const edge& e) {
    return e.kind == edge_kind::order && graph_.is_op(e.to)
           && graph_.op(e.to).moved_from != op_handle::not_moved
           && std::ranges::count(counts, e.from) > 0;
  });
  for (auto& o : graph_.ops) {
    const bool is_same_place = place_of(o.device) == place_of(o.shard());
    const auto count = counts[is_same_place ? o.shard() : o.device];
    if (o.moved_from != op_handle::not_moved && count != no_handle)
      graph_.edges.push_back({count, o.id, edge_kind::order, 0});
  }
  merge_edges(graph_.edges);
}

std::vector<bool> handle_mover::storages_that_stay() const {
  std::vector<bool> stays(graph_.num_storages);
  for (auto& v : graph_.vars)
    if (v.feed)
      stays[v.storage] = true;
  for (auto& o : graph_.ops)
    if (!can_move(o))
      for (auto used : {o.inputs, o.outputs})
        for (auto id : used)
          stays[graph_.var(id).storage] = true;
  return stays;
}

void handle_mover::move_variables() {
  const auto stays = storages_that_stay();
  // By name and device.
  std::set<std::pair<std::string_view, std::uint32_t>> persistables;
  for (auto& v : graph_.vars)
    if (v.persistable)
      persistables.emplace(v.name, v.device);
  std::vector<std::optional<std::uint32_t>> rank(graph_.num_storages);
  for (auto& v : graph_.vars) {
    auto& known = rank[v.storage]; // from an earlier version
    const auto to = rank_of(v.id, [&](std::uint32_t wanted) {
      return known
             || (!stays[v.storage]
                 && (!v.persistable || wanted == v.device
                     || !persistables.contains({v.name, wanted})));
    });
    if (known || !to)
      continue;
    known = to;
    if (v.persistable)
      persistables.emplace(v.name, *to);
  }
  auto sources = std::make_shared<handle_sources>();
  sources->described = graph_.sources->described;
  sources->before = graph_.sources;
  std::vector<std::string_view> name(graph_.num_storages);
  for (auto& v : graph_.vars) {
    if (!rank[v.storage] || *rank[v.storage] == v.device)
      continue;
    if (name[v.storage].empty() && v.persistable)
      name[v.storage] = v.name;
    if (name[v.storage].empty())
      name[v.storage] = sources->undeclared.emplace_back(
        std::string{v.name} + "@" + to_string(graph_.devices[v.device]));
    v.name = name[v.storage];
    v.device = *rank[v.storage];
  }
  graph_.sources = std::move(sources);
}

void handle_mover::require_all_used() const {
  for (std::size_t i = 0; i < table_.size(); ++i)
    if (!is_used_[i])
      throw error{errc::invalid_argument,
                  table_[i].source + ": '" + table_[i].pattern
                    + (has_fitted_[i]
                         ? "' fits only handles that belong to their device"
                         : "' fits no handle that an earlier line does not "
                           "place; troupe graph --nodes prints their names")};
}

ssa_graph handle_mover::move() {
  for (auto& line : table_)
    if (line.rank >= graph_.devices.size())
      throw error{errc::invalid_argument,
                  line.source + ": there is no rank "
                    + std::to_string(line.rank) + ", the last one is "
                    + std::to_string(graph_.devices.size() - 1)};
  // Names have devices in them: all are compared before any handle moves.
  std::vector<std::optional<std::uint32_t>> rank(graph_.ops.size());
  for (auto& o : graph_.ops)
    rank[o.id] = rank_of(o.id, [&](std::uint32_t) { return can_move(o); });
  move_variables();
  require_all_used();
  for (auto& o : graph_.ops)
    if (rank[o.id])
      move_op(o, *rank[o.id]);
  wait_for_counts();
  return std::move(graph_);
}

/// A line without leading and trailing blanks.
std::string_view trimmed(std::string_view line) {
  constexpr auto blanks = " \t\r";
  const auto first = line.find_first_not_of(blanks);
  if (first == line.npos)
    return {};
  return line.substr(first, line.find_last_not_of(blanks) - first + 1);
}

handle_place parse_line(std::string_view line, std::string source) {
  const auto gap = line.find_last_of(" \t");
  const auto number = line.substr(gap == line.npos ? 0 : gap + 1);
  handle_place place{std::string{trimmed(line.substr(0, gap))}, 0,
                     std::move(source)};
  const auto [end, failure] =
    std::from_chars(number.data(), number.data() + number.size(), place.rank);
  if (gap == line.npos || failure != std::errc{}
      || end != number.data() + number.size())
    throw error{errc::invalid_argument, place.source + ": '" + std::string{line}
                                          + "' is not a pattern and a rank"};
  return place;
}

} // namespace

std::vector<handle_place> parse_handle_places(std::string_view text,
                                              const std::string& file) {
  std::vector<handle_place> table;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    const auto line = trimmed(text.substr(0, end));
    text = end == text.npos ? "" : text.substr(end + 1);
    if (!line.empty() && line.front() != '#')
      table.push_back(
        parse_line(line, file + ", line " + std::to_string(number)));
  }
  return table;
}

ssa_graph place_handles(ssa_graph g, std::span<const handle_place> table,
                        const std::vector<std::uint32_t>& place_of_device) {
  if (table.empty())
    return g;
  return handle_mover{std::move(g), table, place_of_device}.move();
}

} // namespace troupe::graph

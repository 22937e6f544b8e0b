// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/picture/graph_layout.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

namespace troupe::dashboard {

namespace {

constexpr double between_columns = 140;
constexpr double between_rows = 52;
constexpr double margin = 16;
constexpr double room_for_name = 24;
constexpr double widest_handle = 120, highest_handle = 30;
constexpr double between_groups = 40;
constexpr double between_bands = 80;
constexpr std::size_t phases = 3;
constexpr int sweeps = 4;

struct adjacency {
  std::vector<std::vector<std::uint32_t>> before, after;

  explicit adjacency(std::size_t nodes) : before(nodes), after(nodes) {}

  void connect(std::uint32_t from, std::uint32_t to) {
    before[to].push_back(from);
    after[from].push_back(to);
  }
};

/// The length of the longest way to each node. Nodes of a cycle stay at the
/// length until then.
std::vector<std::uint32_t> depths(const adjacency& all) {
  std::vector<std::uint32_t> depth(all.before.size()), ready;
  std::vector<std::size_t> missing(all.before.size());
  for (std::uint32_t n = 0; n < missing.size(); ++n)
    if ((missing[n] = all.before[n].size()) == 0)
      ready.push_back(n);
  while (!ready.empty()) {
    const auto from = ready.back();
    ready.pop_back();
    for (auto to : all.after[from]) {
      depth[to] = std::max(depth[to], depth[from] + 1);
      if (--missing[to] == 0)
        ready.push_back(to);
    }
  }
  return depth;
}

/// Parameters and feeds wait for nothing: they stand right before the first
/// handle that needs them, not all in the first column.
void pull_sources(const adjacency& all, std::vector<std::uint32_t>& depth) {
  for (std::uint32_t n = 0; n < depth.size(); ++n) {
    if (!all.before[n].empty() || all.after[n].empty())
      continue;
    auto least = UINT32_MAX;
    for (auto to : all.after[n])
      least = std::min(least, depth[to]);
    depth[n] = least > 0 ? least - 1 : 0;
  }
}

/// Nodes of the same depth, from top to bottom.
using column = std::vector<std::uint32_t>;

// Centred, so that columns of different size fit beside each other.
void number(const column& c, std::vector<double>& row) {
  const auto middle = (static_cast<double>(c.size()) - 1) / 2;
  for (std::size_t i = 0; i < c.size(); ++i)
    row[c[i]] = static_cast<double>(i) - middle;
}

double mean_row(const column& of, const std::vector<double>& row,
                double otherwise) {
  if (of.empty())
    return otherwise;
  double sum = 0;
  for (auto n : of)
    sum += row[n];
  return sum / static_cast<double>(of.size());
}

void sort_column(column& c, const std::vector<column>& towards,
                 std::vector<double>& row) {
  std::vector<std::pair<double, std::uint32_t>> order;
  for (auto n : c)
    order.emplace_back(mean_row(towards[n], row, row[n]), n);
  std::ranges::stable_sort(order);
  for (std::size_t i = 0; i < c.size(); ++i)
    c[i] = order[i].second;
  number(c, row);
}

/// The nodes in columns by depth, sorted so that few edges cross.
std::vector<column> columns_of(const adjacency& all,
                               const std::vector<std::uint32_t>& depth) {
  std::vector<column> columns;
  for (std::uint32_t n = 0; n < depth.size(); ++n) {
    if (columns.size() <= depth[n])
      columns.resize(depth[n] + std::size_t{1});
    columns[depth[n]].push_back(n);
  }
  std::vector<double> row(depth.size());
  for (const auto& c : columns)
    number(c, row);
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (auto& c : columns)
      sort_column(c, all.before, row);
    for (auto c = columns.rbegin(); c != columns.rend(); ++c)
      sort_column(*c, all.after, row);
  }
  return columns;
}

/// A group by itself: its handles' places from its upper left corner.
struct placed_group {
  std::vector<point> places; ///< in the order of the group's handles
  double width = 0;
  double height = 0;
};

placed_group place(const handle_group& group, const adjacency& inside) {
  auto depth = depths(inside);
  pull_sources(inside, depth);
  const auto columns = columns_of(inside, depth);
  std::size_t tallest = 1;
  for (const auto& c : columns)
    tallest = std::max(tallest, c.size());

  placed_group made;
  made.places.resize(group.handles.size());
  const auto wide = static_cast<double>(columns.size() - 1) * between_columns;
  const auto high = static_cast<double>(tallest - 1) * between_rows;
  made.width = wide + widest_handle + 2 * margin;
  made.height = high + highest_handle + 2 * margin + room_for_name;
  for (std::size_t x = 0; x < columns.size(); ++x) {
    const auto spare =
      high - static_cast<double>(columns[x].size() - 1) * between_rows;
    for (std::size_t y = 0; y < columns[x].size(); ++y)
      made.places[columns[x][y]] = {
        margin + widest_handle / 2 + static_cast<double>(x) * between_columns,
        room_for_name + margin + highest_handle / 2 + spare / 2
          + static_cast<double>(y) * between_rows};
  }
  return made;
}

/// Which group each handle is in, and as which of its handles.
struct membership {
  std::vector<std::uint32_t> group, index;

  membership(std::size_t handles, std::span<const handle_group> groups)
    : group(handles), index(handles) {
    for (std::uint32_t g = 0; g < groups.size(); ++g)
      for (std::uint32_t i = 0; i < groups[g].handles.size(); ++i) {
        group[groups[g].handles[i]] = g;
        index[groups[g].handles[i]] = i;
      }
  }
};

std::vector<placed_group> place_all(const trace::graph_info& graph,
                                    std::span<const handle_group> groups,
                                    const membership& member) {
  std::vector<adjacency> inside;
  for (const auto& g : groups)
    inside.emplace_back(g.handles.size());
  for (const auto& e : graph.edges)
    if (const auto g = member.group[e.from];
        e.distance == 0 && e.from != e.to && g == member.group[e.to])
      inside[g].connect(member.index[e.from], member.index[e.to]);
  std::vector<placed_group> made;
  for (std::size_t g = 0; g < groups.size(); ++g)
    made.push_back(place(groups[g], inside[g]));
  return made;
}

/// The column of each layer, by name: the same on all devices. Layers go in the
/// order in which their forward parts begin, so one that is used twice makes no
/// cycle.
std::map<std::string_view, std::uint32_t>
rank_layers(const trace::graph_info& graph,
            std::span<const handle_group> groups, const membership& member) {
  adjacency all{graph.handles.size()};
  for (const auto& e : graph.edges)
    if (e.distance == 0 && e.from != e.to)
      all.connect(e.from, e.to);
  auto depth = depths(all);
  pull_sources(all, depth);
  const auto forward = [&](std::uint32_t g) {
    return groups[g].phase == step_phase::forward;
  };
  std::map<std::string_view, std::uint32_t> begins;
  for (std::uint32_t g = 0; g < groups.size(); ++g)
    for (auto id : groups[g].handles) {
      // Layers without a forward part come behind those that have one.
      const auto begin =
        depth[id] + (forward(g) ? 0 : static_cast<std::uint32_t>(depth.size()));
      const auto [at, is_new] = begins.try_emplace(groups[g].layer, begin);
      at->second = std::min(at->second, begin);
    }
  std::vector<std::pair<std::uint32_t, std::string_view>> order;
  for (const auto& [layer, begin] : begins)
    order.emplace_back(begin, layer);
  std::ranges::sort(order);
  std::map<std::string_view, std::uint32_t> number;
  for (std::uint32_t i = 0; i < order.size(); ++i)
    number[order[i].second] = i;

  std::vector<std::vector<std::uint32_t>> before(order.size());
  for (const auto& e : graph.edges) {
    const auto from = member.group[e.from], to = member.group[e.to];
    if (e.distance > 0 || !forward(from) || !forward(to))
      continue;
    const auto a = number[groups[from].layer], b = number[groups[to].layer];
    if (a < b)
      before[b].push_back(a);
  }
  std::vector<std::uint32_t> rank(order.size());
  std::map<std::string_view, std::uint32_t> ranks;
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    for (auto b : before[i])
      rank[i] = std::max(rank[i], rank[b] + 1);
    ranks[order[i].second] = rank[i];
  }
  return ranks;
}

/// The beginnings of stripes that are as wide as what stands in them.
std::vector<double> beginnings(std::span<const double> widths, double between) {
  std::vector<double> begin(widths.size() + 1);
  for (std::size_t i = 0; i < widths.size(); ++i)
    begin[i + 1] = begin[i] + (widths[i] > 0 ? widths[i] + between : 0);
  return begin;
}

} // namespace

graph_layout lay_out(const trace::graph_info& graph,
                     std::span<const handle_group> groups) {
  const membership member{graph.handles.size(), groups};
  const auto parts = place_all(graph, groups, member);
  const auto ranks = rank_layers(graph, groups, member);

  // A cell is a column of a lane; a lane is a phase of a device. Its groups
  // stand on top of each other.
  const auto lane_of = [&](std::size_t g) {
    return groups[g].device * phases
           + static_cast<std::size_t>(groups[g].phase);
  };
  const auto lanes = graph.devices.size() * phases;
  std::vector<double> column_widths(groups.size() + 1), lane_heights(lanes);
  std::map<std::pair<std::size_t, std::uint32_t>, double> filled;
  graph_layout made;
  made.groups.resize(groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto rank = ranks.at(groups[g].layer);
    auto& high = filled[{lane_of(g), rank}];
    made.groups[g] = {0, high, parts[g].width, parts[g].height};
    high += parts[g].height + between_groups;
    column_widths[rank] = std::max(column_widths[rank], parts[g].width);
    lane_heights[lane_of(g)] =
      std::max(lane_heights[lane_of(g)], high - between_groups);
  }
  const auto x = beginnings(column_widths, between_groups);
  const auto y = beginnings(lane_heights, between_groups);

  made.places.resize(graph.handles.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    auto& b = made.groups[g];
    b.x = x[ranks.at(groups[g].layer)];
    b.y += y[lane_of(g)] + groups[g].device * between_bands;
    for (std::size_t i = 0; i < groups[g].handles.size(); ++i)
      made.places[groups[g].handles[i]] = {b.x + parts[g].places[i].x,
                                           b.y + parts[g].places[i].y};
    made.width = std::max(made.width, b.x + b.width);
    made.height = std::max(made.height, b.y + b.height);
  }
  return made;
}

} // namespace troupe::dashboard

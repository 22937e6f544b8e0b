// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/picture/graph_layout.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace troupe::dashboard {

namespace {

constexpr double between_columns = 5; // names are wide
constexpr double between_rows = 1.6;
constexpr double between_bands = 3;
constexpr int sweeps = 4;

struct adjacency {
  std::vector<std::vector<handle_id>> before, after;
};

adjacency adjacency_of(const trace::graph_info& graph) {
  adjacency found;
  found.before.resize(graph.handles.size());
  found.after.resize(graph.handles.size());
  for (const auto& e : graph.edges)
    if (e.distance == 0 && e.from != e.to) {
      found.before[e.to].push_back(e.from);
      found.after[e.from].push_back(e.to);
    }
  return found;
}

/// The length of the longest way to each handle. Handles of a cycle, which no
/// graph that runs has, stay at the length until then.
std::vector<std::uint32_t> depths(const adjacency& all) {
  std::vector<std::uint32_t> depth(all.before.size());
  std::vector<std::size_t> missing(all.before.size());
  std::vector<handle_id> ready;
  for (handle_id id = 0; id < missing.size(); ++id)
    if ((missing[id] = all.before[id].size()) == 0)
      ready.push_back(id);
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
  for (handle_id id = 0; id < depth.size(); ++id) {
    if (!all.before[id].empty() || all.after[id].empty())
      continue;
    std::uint32_t least = UINT32_MAX;
    for (auto to : all.after[id])
      least = std::min(least, depth[to]);
    depth[id] = least > 0 ? least - 1 : 0;
  }
}

/// Handles of a device that stand in the same column.
using column = std::vector<handle_id>;
/// By device and depth.
using column_table = std::map<std::pair<std::uint32_t, std::uint32_t>, column>;

void number(const column& c, std::vector<double>& row) {
  // Centred, so that columns of different size fit beside each other.
  const auto middle = (static_cast<double>(c.size()) - 1) / 2;
  for (std::size_t i = 0; i < c.size(); ++i)
    row[c[i]] = static_cast<double>(i) - middle;
}

double mean_row(const std::vector<handle_id>& of,
                const std::vector<double>& row, double otherwise) {
  if (of.empty())
    return otherwise;
  double sum = 0;
  for (auto id : of)
    sum += row[id];
  return sum / static_cast<double>(of.size());
}

void sort_column(column& c, const std::vector<std::vector<handle_id>>& towards,
                 std::vector<double>& row) {
  std::vector<std::pair<double, handle_id>> order;
  for (auto id : c)
    order.emplace_back(mean_row(towards[id], row, row[id]), id);
  std::ranges::stable_sort(order);
  for (std::size_t i = 0; i < c.size(); ++i)
    c[i] = order[i].second;
  number(c, row);
}

} // namespace

graph_layout lay_out(const trace::graph_info& graph) {
  const auto all = adjacency_of(graph);
  auto depth = depths(all);
  pull_sources(all, depth);
  column_table columns;
  for (handle_id id = 0; id < depth.size(); ++id)
    columns[{graph.handles[id].device, depth[id]}].push_back(id);

  std::vector<double> row(depth.size());
  for (const auto& [key, c] : columns)
    number(c, row);
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (auto& [key, c] : columns)
      sort_column(c, all.before, row);
    for (auto c = columns.rbegin(); c != columns.rend(); ++c)
      sort_column(c->second, all.after, row);
  }

  std::vector<std::size_t> tallest(graph.devices.size());
  for (const auto& [key, c] : columns)
    if (key.first < tallest.size())
      tallest[key.first] = std::max(tallest[key.first], c.size());
  std::vector<double> middle; // of each band
  double top = 0;
  for (auto rows : tallest) {
    const auto high = static_cast<double>(rows) * between_rows;
    middle.push_back(top + high / 2);
    top += high + between_bands;
  }

  graph_layout made;
  made.places.resize(depth.size());
  for (handle_id id = 0; id < depth.size(); ++id) {
    const auto device = graph.handles[id].device;
    made.places[id] = {(depth[id] + 0.5) * between_columns,
                       (device < middle.size() ? middle[device] : 0)
                         + row[id] * between_rows};
    made.width = std::max(made.width, (depth[id] + 1.0) * between_columns);
  }
  made.height = std::max(0.0, top - between_bands);
  return made;
}

} // namespace troupe::dashboard

// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/task_graph.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/random.hpp>

#include <algorithm>
#include <array>
#include <bit>

namespace troupe::apps {

namespace {

// Limits that fit into memory: a task takes about a kilobyte.
constexpr std::int64_t most_tasks = 1 << 24;
constexpr std::size_t most_edges = 1 << 27;

/// A row of the grid: columns [first, first + count).
struct row {
  std::int64_t first = 0;
  std::int64_t count = 0;

  bool has(std::int64_t column) const {
    return column >= first && column < first + count;
  }
};

using columns = std::vector<std::int64_t>;

/// The position of a task and the tasks that it may depend on.
struct place {
  const task_pattern& pattern;
  std::int64_t step;
  std::int64_t column;

  std::int64_t width() const { return pattern.width; }
};

columns interval(std::int64_t first, std::int64_t last) {
  columns found;
  for (auto c = first; c <= last; ++c)
    found.push_back(c);
  return found;
}

columns nothing(const place&) {
  return {};
}

columns itself(const place& p) {
  return {p.column};
}

columns neighbours(const place& p) {
  return interval(p.column - 1, p.column + 1);
}

columns neighbours_around(const place& p) {
  columns found;
  for (auto c : neighbours(p))
    found.push_back((c + p.width()) % p.width());
  return found;
}

columns left_and_itself(const place& p) {
  return interval(p.column - 1, p.column);
}

columns parent(const place& p) {
  return {p.column / 2};
}

columns butterfly(const place& p) {
  const auto stages = std::max<std::int64_t>(
    1, std::bit_width(static_cast<std::uint64_t>(p.width() - 1)));
  const auto reach = std::int64_t{1} << ((p.step - 1) % stages);
  return {p.column - reach, p.column, p.column + reach};
}

columns everything(const place& p) {
  return interval(0, p.width() - 1);
}

columns window(const place& p) {
  const auto r = p.pattern.radix;
  if (r == 0)
    return {};
  return interval(p.column - r / 2, p.column + (r - 1) / 2);
}

columns spread_out(const place& p) {
  const auto r = p.pattern.radix;
  columns found;
  for (std::int64_t k = 0; k < r; ++k)
    found.push_back((p.column + k * p.width() / r + (k > 0 ? p.step % 3 : 0))
                    % p.width());
  return found;
}

/// The task's own column and about a quarter of the other columns of the
/// window.
columns random_window(const place& p) {
  auto found = window(p);
  std::erase_if(found, [&](std::int64_t c) {
    splitmix64 draw{static_cast<std::uint64_t>(p.column * 7919 + c)};
    return c != p.column && draw.below(4) != 0;
  });
  return found;
}

row whole_row(const task_pattern& p, std::int64_t) {
  return {0, p.width};
}

row sweep_row(const task_pattern& p, std::int64_t step) {
  return {std::max<std::int64_t>(0, step + p.width - p.steps),
          std::min({p.width, step + 1, p.steps - step})};
}

row tree_row(const task_pattern& p, std::int64_t step) {
  return {0, step > 40 ? p.width : std::min(p.width, std::int64_t{1} << step)};
}

struct pattern_entry {
  std::string_view name;
  columns (*depends_on)(const place&);
  row (*active)(const task_pattern&, std::int64_t step) = whole_row;
  bool has_radix = false;
};

constexpr std::array<pattern_entry, 11> patterns{{
  {"trivial", nothing},
  {"no_comm", itself},
  {"stencil_1d", neighbours},
  {"stencil_1d_periodic", neighbours_around},
  {"dom", left_and_itself, sweep_row},
  {"tree", parent, tree_row},
  {"fft", butterfly},
  {"all_to_all", everything},
  {"nearest", window, whole_row, true},
  {"spread", spread_out, whole_row, true},
  {"random_nearest", random_window, whole_row, true},
}};

constexpr auto pattern_names = [] {
  std::array<std::string_view, patterns.size()> names{};
  for (std::size_t i = 0; i < patterns.size(); ++i)
    names[i] = patterns[i].name;
  return names;
}();

const pattern_entry& find_pattern(const task_pattern& wanted) {
  for (const auto& p : patterns)
    if (p.name == wanted.name)
      return p;
  throw error(errc::invalid_argument, "no such task pattern: " + wanted.name);
}

void check(const task_pattern& p, bool has_radix) {
  if (p.width < 1 || p.steps < 1 || p.width > most_tasks / p.steps)
    throw error(errc::invalid_argument,
                "--width x --steps: a grid has from 1 to "
                  + std::to_string(most_tasks) + " tasks, not "
                  + std::to_string(p.width) + " x " + std::to_string(p.steps));
  if (has_radix && (p.radix < 0 || p.radix > p.width))
    throw error(errc::invalid_argument, "--radix: must be from 0 to the width, "
                                          + std::to_string(p.width) + ", not "
                                          + std::to_string(p.radix));
}

struct task_counts {
  std::size_t tasks = 0;
  std::size_t edges = 0;
};

/// Calls `visit` for each task, with the numbers of its predecessors, until it
/// returns false.
template <class Visit>
void for_each_task(const task_pattern& pattern, const pattern_entry& entry,
                   Visit visit) {
  row before;
  std::size_t before_at = 0; // number of the previous row's first task
  std::vector<std::uint32_t> predecessors;
  for (std::int64_t step = 0; step < pattern.steps; ++step) {
    const auto now = entry.active(pattern, step);
    for (auto c = now.first; c < now.first + now.count; ++c) {
      auto wanted = step > 0 ? entry.depends_on({pattern, step, c}) : columns{};
      std::sort(wanted.begin(), wanted.end());
      wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
      predecessors.clear();
      for (auto w : wanted)
        if (before.has(w))
          predecessors.push_back(static_cast<std::uint32_t>(
            before_at + static_cast<std::size_t>(w - before.first)));
      if (!visit(predecessors))
        return;
    }
    before_at += static_cast<std::size_t>(before.count);
    before = now;
  }
}

/// Counts the tasks and their dependencies; refuses too many of these.
task_counts count_tasks(const task_pattern& pattern,
                        const pattern_entry& entry) {
  task_counts counts;
  for_each_task(pattern, entry, [&](const auto& predecessors) {
    ++counts.tasks;
    counts.edges += predecessors.size();
    return counts.edges <= most_edges;
  });
  if (counts.edges > most_edges)
    throw error(errc::invalid_argument,
                "--width x --steps: the tasks of such a grid have more than "
                  + std::to_string(most_edges) + " dependencies");
  return counts;
}

} // namespace

std::span<const std::string_view> task_patterns() {
  return pattern_names;
}

task_graph make_task_graph(const task_pattern& pattern) {
  const auto& entry = find_pattern(pattern);
  check(pattern, entry.has_radix);
  const auto counts = count_tasks(pattern, entry);
  task_graph graph;
  graph.first.reserve(counts.tasks + 1);
  graph.predecessors.reserve(counts.edges);
  for_each_task(pattern, entry, [&](const auto& predecessors) {
    graph.predecessors.insert(graph.predecessors.end(), predecessors.begin(),
                              predecessors.end());
    graph.first.push_back(
      static_cast<std::uint32_t>(graph.predecessors.size()));
    return true;
  });
  return graph;
}

std::vector<std::vector<std::uint32_t>> task_graph::successors() const {
  std::vector<std::vector<std::uint32_t>> after(tasks());
  for (std::uint32_t t = 0; t < tasks(); ++t)
    for (auto p : before(t))
      after[p].push_back(t);
  return after;
}

} // namespace troupe::apps

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/analysis/op_graph.hpp>
#include <troupe/trace/analysis/statistics.hpp>
#include <troupe/trace/analysis/timeline.hpp>
#include <troupe/trace/trace.hpp>

#include <compare>
#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::trace {

/// What decides how long an op takes, as far as a graph tells: ops with equal
/// keys do the same work. docs/trace.md says why these are the parts.
struct cost_key {
  std::string type;
  std::string attributes; ///< handle_info::attributes: strides, axes, ...
  std::string shapes;     ///< of the inputs, as declared (handle_info::shape)
  std::string results;    ///< of the outputs, likewise: which ones it computes
  std::string device;     ///< "cpu:0"
  friend auto operator<=>(const cost_key&, const cost_key&) = default;
};

/// The key of an op of a graph.
cost_key cost_key_of(const graph_info& graph, handle_id op);

/// What ops cost that have the same key.
struct op_cost {
  cost_key key;
  /// Empty: the row is of all ops with the key but those that have a row of
  /// their own. Else of this op alone, whose time differs from those of the
  /// others beyond the spread of its runs.
  std::string op;
  /// How many ops the row is of. 0: every op with the key has a row of its own,
  /// and this one, of all their runs, is for the ops of other graphs.
  std::size_t ops = 1;
  std::size_t count = 0; ///< runs that were measured
  /// Time of a run, in nanoseconds: the mean over the ops of their medians.
  /// Times `ops`, it is the time of all; summed over all rows, that of a step.
  /// Of a collective and a
  /// `recv` without the time in which it waited for others.
  double ns = 0;
  spread runs;      ///< of all runs
  double bytes = 0; ///< that a run allocates for its results, on average
};

/// Costs of ops: what `troupe trace costs` prints, and what `bench schedule
/// --delay` and `critical-path --what-if` read.
class cost_table {
public:
  /// Of rows in the order of `rows`. Of two for the same op or key, the first
  /// counts.
  explicit cost_table(std::vector<op_cost> rows);
  /// Measures the steps of a run that count (`timeline::op_steps`).
  static cost_table measure(std::span<const process_trace> parts,
                            const timeline& all, const op_graph& graph);
  /// Reads a file of lines that `to_json` made; empty lines are skipped. Throws
  /// error(bad_file) with the number of the line, and what `read_whole_file`
  /// throws.
  static cost_table read(const std::filesystem::path& file);

  /// The most time in all runs first.
  std::span<const op_cost> rows() const noexcept { return rows_; }
  /// The row for an op of a graph, which can be another one than was measured:
  /// that of the op alone, or that of its key, or that of its key on another
  /// device of the same kind. Null if there is none.
  const op_cost* find(const graph_info& graph, handle_id op) const;

private:
  std::vector<op_cost> rows_;
  std::map<cost_key, std::size_t> of_all_;  // rows without `op`
  std::map<cost_key, std::size_t> of_kind_; // the same, devices as "cpu"
  std::map<std::string, std::size_t, std::less<>> of_op_; // rows with `op`
};

/// A row as one line of JSON, without a newline: the keys are in
/// docs/command-line.md.
std::string to_json(const op_cost& row);

} // namespace troupe::trace

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/trace/analysis/op_graph.hpp>
#include <troupe/trace/analysis/timeline.hpp>
#include <troupe/trace/merge.hpp>
#include <troupe/trace/trace.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::apps {

/// A run that was killed early leaves a file that ends before the graph is
/// known.
enum class without_graph {
  refused, ///< error(bad_file)
  told,    ///< on stderr
};

/// Reads the files. Tells on stderr what could not be read of them. Throws as
/// `read_trace` does.
std::vector<trace::process_trace>
read_traces(const std::vector<std::string>& files,
            without_graph is = without_graph::refused);

/// Tells on stderr by how much the clocks of a run's processes contradict each
/// other, if they do.
void warn_of_clocks(const trace::clock_merge& found);
/// "clocks contradict each other by up to 5.00 ms: ..."; empty if they do not.
std::string clocks_text(const trace::clock_merge& found);

/// "1 file of 2 ranks is missing: ..."; empty if the files are of all ranks.
std::string missing_ranks_text(const std::vector<trace::process_trace>& parts);
/// Tells it on stderr.
void warn_of_missing_ranks(const std::vector<trace::process_trace>& parts);

/// The traces of all processes of a run, on one clock.
class traced_run {
public:
  /// Reads the files (read_traces), and warns of their clocks. Throws as
  /// `read_trace` and `merge_clocks` do, with the file's name.
  explicit traced_run(const std::vector<std::string>& files,
                      without_graph is = without_graph::refused);
  traced_run(const traced_run&) = delete;
  traced_run& operator=(const traced_run&) = delete;

  const std::vector<trace::process_trace>& parts() const noexcept {
    return parts_;
  }
  const trace::clock_merge& clocks() const noexcept { return clocks_; }
  const trace::op_graph& graph() const noexcept { return graph_; }
  const trace::timeline& timeline() const noexcept { return timeline_; }
  std::string name_of(handle_id id) const {
    return std::string{parts_.front().name_of(id)};
  }

  /// True if the trace says when ops ran.
  bool has_ops() const noexcept { return !timeline_.runs().empty(); }
  ///@{
  /// Throws error(invalid_argument) with the first file's name if no step has
  /// ended in the trace, or if it does not say when the ops of a step ran.
  void require_steps() const;
  void require_ops() const;
  ///@}
  /// The step that `--step` names, a whole number of any size. Throws with the
  /// first file's name if it did not begin and end in the trace: usage_error,
  /// or if no step did, error(invalid_argument).
  const trace::step_times& step(const std::string& text) const;
  /// Why no step has ended in the trace, where none has.
  std::string why_no_step() const;
  /// The first file's name, then why the traces cannot tell what was asked.
  error refusal(const std::string& why) const;

private:
  std::vector<std::string> files_;
  std::vector<trace::process_trace> parts_;
  trace::clock_merge clocks_;
  trace::op_graph graph_;
  trace::timeline timeline_;
};

/// Adds the positional argument F.trt.
void add_trace_files(CLI::App& command, std::vector<std::string>& files);

/// A time with a unit that fits: "12.3 us", "4.56 ms".
std::string time_text(double ns);
/// A share as "12.3 %".
std::string percent_text(double share);
/// "12.3 MiB".
std::string bytes_text(double bytes);

} // namespace troupe::apps

// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/export/exporters.hpp>

#include <troupe/base/quoted_name.hpp>
#include <troupe/trace/analysis/timeline.hpp>
#include <troupe/trace/export/text_file.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace troupe::trace {

namespace {

struct op_times {
  std::uint64_t runs = 0;
  std::uint64_t ns = 0;
};

std::string dot_text(std::string_view text) {
  std::string escaped;
  for (const char c : one_line(text)) {
    if (c == '"' || c == '\\')
      escaped += '\\';
    escaped += c;
  }
  return escaped;
}

/// White to red, by a share of the slowest op's time.
std::string color_of(double share) {
  const auto saturation = std::lround(1000 * share);
  const auto digits = std::to_string(saturation);
  return "0.000 " + std::to_string(saturation / 1000) + "."
         + std::string(3 - std::min<std::size_t>(digits.size(), 3), '0')
         + (saturation == 1000 ? "000" : digits) + " 1.000";
}

void write_node(text_file& to, const handle_info& h, handle_id id,
                const op_times& times, std::uint64_t slowest) {
  to << "    h" << id << " [shape=" << (h.is_op ? "box" : "ellipse")
     << ", label=\"" << dot_text(h.name);
  if (times.runs > 0) {
    to << "\\n";
    to.microseconds(times.ns / times.runs) << " us x " << times.runs;
  }
  to << "\"";
  if (slowest > 0 && times.runs > 0)
    to << ", style=filled, fillcolor=\""
       << color_of(static_cast<double>(times.ns) / static_cast<double>(slowest))
       << "\"";
  to << "];\n";
}

} // namespace

void export_dot(std::span<const process_trace> traces,
                const std::filesystem::path& file) {
  const auto& g = traces[0].graph;
  std::vector<op_times> times(g.handles.size());
  const timeline all{traces};
  for (const auto& r : all.runs()) {
    ++times[r.op].runs;
    times[r.op].ns += r.end - r.begin;
  }
  const auto slowest =
    times.empty() ? 0 : std::ranges::max(times, {}, &op_times::ns).ns;
  text_file to{file};
  to << "digraph troupe {\n";
  for (std::uint32_t device = 0; device < g.devices.size(); ++device) {
    to << "  subgraph cluster_" << device << " {\n    label=\""
       << dot_text(g.devices[device]) << "\";\n";
    for (handle_id id = 0; id < g.handles.size(); ++id)
      if (g.handles[id].device == device)
        write_node(to, g.handles[id], id, times[id], slowest);
    to << "  }\n";
  }
  for (auto& e : g.edges) {
    to << "  h" << e.from << " -> h" << e.to;
    if (e.distance > 0)
      to << " [label=\"+" << e.distance << "\", color=blue, constraint=false]";
    to << ";\n";
  }
  to << "}\n";
  to.commit();
}

} // namespace troupe::trace

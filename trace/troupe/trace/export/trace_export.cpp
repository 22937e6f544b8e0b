// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/export/trace_export.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/trace/export/exporters.hpp>
#include <troupe/trace/merge.hpp>

#include <algorithm>
#include <string>

namespace troupe::trace {

export_format parse_export_format(std::string_view name) {
  const auto found = std::ranges::find(export_format_names, name);
  if (found != export_format_names.end())
    return static_cast<export_format>(found - export_format_names.begin());
  std::string known;
  for (auto each : export_format_names)
    known += (known.empty() ? "" : ", ") + std::string{each};
  throw error(errc::invalid_argument,
              "unknown format " + quoted_name(name) + "; formats are " + known);
}

bool is_built_in(export_format format) noexcept {
  return format != export_format::sqlite || has_sqlite();
}

void export_trace(std::vector<process_trace> traces, export_format format,
                  const std::filesystem::path& file) {
  if (traces.empty())
    throw error(errc::invalid_argument, "there is no trace to export");
  merge_clocks(traces);
  const op_graph graph{traces.front().graph};
  const parcel_list parcels{traces, graph};
  const auto all = from_origin(traces, parcels.all());
  switch (format) {
  case export_format::chrome: return export_chrome(all, file);
  case export_format::perfetto: return export_perfetto(all, file);
  case export_format::sqlite: return export_sqlite(all, parcels.all(), file);
  case export_format::dot: return export_dot(traces, file);
  case export_format::csv: return export_csv(all, file);
  case export_format::speedscope: return export_speedscope(all, file);
  }
}

} // namespace troupe::trace

// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/export/trace_export.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/trace/export/exporters.hpp>

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

clock_merge export_trace(std::vector<process_trace> traces,
                         export_format format,
                         const std::filesystem::path& file) {
  if (traces.empty())
    throw error(errc::invalid_argument, "there is no trace to export");
  auto clocks = merge_clocks(traces);
  const op_graph graph{traces.front().graph};
  const parcel_list parcels{traces, graph};
  const auto all = from_origin(traces, parcels.all());
  switch (format) {
  case export_format::chrome: export_chrome(all, file); break;
  case export_format::perfetto: export_perfetto(all, file); break;
  case export_format::sqlite: export_sqlite(all, parcels.all(), file); break;
  case export_format::dot: export_dot(traces, file); break;
  case export_format::csv: export_csv(all, file); break;
  case export_format::speedscope: export_speedscope(all, file); break;
  }
  return clocks;
}

} // namespace troupe::trace

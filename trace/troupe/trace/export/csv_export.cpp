// SPDX-License-Identifier: Apache-2.0
// Comma-separated values as in RFC 4180, with a line of names.
#include <troupe/trace/export/exporters.hpp>
#include <troupe/trace/export/text_file.hpp>

#include <string>
#include <vector>

namespace troupe::trace {

namespace {

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos)
    return std::string{text};
  std::string quoted = "\"";
  for (const char c : text)
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

class csv_writer final : public slice_sink {
public:
  csv_writer(text_file& to, const traced_process& process)
    : to_(to), trace_(*process.trace), process_(process.number) {
    for (auto& h : trace_.graph.handles) {
      names_.push_back(csv_field(h.name));
      places_.push_back(csv_field(h.type) + ","
                        + csv_field(trace_.graph.devices[h.device]) + ","
                        + csv_field(h.stream) + "," + csv_field(h.shape));
    }
  }

  void take(const slice& s) override {
    if (s.op == no_handle)
      return;
    to_ << process_ << "," << to_string(s.kind) << "," << to_string(s.track)
        << "," << s.step << "," << names_[s.op] << "," << places_[s.op] << ",";
    if (s.ready != 0)
      to_ << s.ready;
    to_ << "," << s.begin << "," << s.end << "," << s.end - s.begin << ",";
    if (s.waited_for != no_handle)
      to_ << names_[s.waited_for];
    to_ << (s.is_cut ? ",1\n" : ",0\n");
  }

private:
  text_file& to_;
  const process_trace& trace_;
  std::size_t process_;
  std::vector<std::string> names_, places_; // as fields
};

} // namespace

void export_csv(export_input traces, const std::filesystem::path& file) {
  text_file to{file};
  to << "process,kind,track,step,op,type,device,stream,shape,ready_ns,begin_ns,"
        "end_ns,duration_ns,waited_for,is_cut\n";
  for (auto& process : traces) {
    csv_writer writer{to, process};
    build_slices(process, with_messages::yes, writer);
  }
  to.commit();
}

} // namespace troupe::trace

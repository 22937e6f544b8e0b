// SPDX-License-Identifier: Apache-2.0
// https://www.speedscope.app/file-format-schema.json, "evented" profiles: one
// for each track, so the slices of a track must be together.
#include <troupe/trace/export/exporters.hpp>
#include <troupe/trace/export/json_string.hpp>
#include <troupe/trace/export/text_file.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe::trace {

namespace {

/// What is kept of a slice.
struct framed_time {
  std::uint64_t begin, end;
  handle_id op;
};

class slice_collector final : public slice_sink {
public:
  void take(const slice& s) override {
    if (s.op != no_handle)
      tracks_[{s.track.kind, s.track.number}].push_back({s.begin, s.end, s.op});
  }

  std::map<std::pair<track_kind, std::uint32_t>, std::vector<framed_time>>
    tracks_;
};

/// Writes begins and ends in their order: a slice within another one follows
/// it.
void write_events(text_file& to, const std::vector<framed_time>& slices) {
  std::vector<framed_time> open;
  bool is_first = true;
  const auto write = [&](std::string_view type, handle_id op,
                         std::uint64_t at) {
    to << (is_first ? "" : ",") << R"({"type":")" << type << R"(","frame":)"
       << op << R"(,"at":)" << at << "}";
    is_first = false;
  };
  const auto close_until = [&](std::uint64_t time) {
    for (; !open.empty() && open.back().end <= time; open.pop_back())
      write("C", open.back().op, open.back().end);
  };
  for (auto& s : slices) {
    close_until(s.begin);
    write("O", s.op, s.begin);
    open.push_back(s);
  }
  close_until(UINT64_MAX);
}

void write_profile(text_file& to, const std::string& name,
                   const std::vector<framed_time>& slices) {
  const auto last = std::ranges::max(slices, {}, &framed_time::end).end;
  to << R"({"type":"evented","name":)" << json_string(name)
     << R"(,"unit":"nanoseconds","startValue":)" << slices.front().begin
     << R"(,"endValue":)" << last << R"(,"events":[)";
  write_events(to, slices);
  to << "]}";
}

} // namespace

void export_speedscope(export_input traces, const std::filesystem::path& file) {
  text_file to{file};
  to << R"({"$schema":"https://www.speedscope.app/file-format-schema.json",)"
     << R"("exporter":)"
     << json_string("troupe " + traces[0].trace->run.version) << R"(,"name":)"
     << json_string(traces[0].trace->run.command) << R"(,"shared":{"frames":[)";
  std::vector<handle_id> first_frame;
  handle_id frames = 0;
  for (auto& process : traces) {
    first_frame.push_back(frames);
    for (auto& h : process.trace->graph.handles)
      to << (frames++ == 0 ? "" : ",") << R"({"name":)" << json_string(h.name)
         << "}";
  }
  to << R"(]},"profiles":[)";
  bool is_first = true;
  for (auto& process : traces) {
    slice_collector found;
    build_slices(process, with_messages::no, found);
    for (auto& [track, slices] : found.tracks_) {
      for (auto& s : slices)
        s.op += first_frame[process.number];
      to << (is_first ? "\n" : ",\n");
      is_first = false;
      write_profile(to,
                    "rank " + std::to_string(process.trace->run.process) + ", "
                      + to_string(track_id{track.first, track.second}),
                    slices);
    }
  }
  to << "\n]}\n";
  to.commit();
}

} // namespace troupe::trace

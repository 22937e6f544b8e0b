// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/export/html_report.hpp>

#include <troupe/trace/export/report_numbers.hpp>
#include <troupe/trace/export/report_pictures.hpp>
#include <troupe/trace/export/text_file.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

namespace troupe::trace {

// The colours of ops are those of Okabe and Ito, which the colour-blind can
// tell apart.
const std::string_view report_style =
  R"(:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--dim:#59636e;--rule:#d1d9e0}
@media(prefers-color-scheme:dark){:root{--paper:#0d1117;--ink:#e6edf3;--dim:#9198a1;--rule:#3d444d}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:70rem;padding:1rem;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin-top:2rem}
p{max-width:45rem}.dim{color:var(--dim)}
.wide{overflow-x:auto}.wide svg{min-width:44rem}
svg{display:block;width:100%;border:1px solid var(--rule)}
.wide .key{display:inline-block;width:.8em;height:.8em;min-width:0;border:0}
svg text{font:11px system-ui,sans-serif;fill:var(--ink)}svg .name{fill:#000;pointer-events:none}
table{border-collapse:collapse;font-size:.9rem}
th,td{padding:.2rem .7rem .2rem 0;border-bottom:1px solid var(--rule);text-align:left;vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap}
.line{fill:none;stroke:var(--ink);stroke-width:1.5}
.c0{fill:#56b4e9}.c1{fill:#e69f00}.c2{fill:#009e73}.c3{fill:#f0e442}.c4{fill:#0072b2}.c5{fill:#d55e00}.c6{fill:#cc79a7}.c7{fill:#999}
.c4+.name,.c5+.name{fill:#fff}.faint{opacity:.35}.faint+.name{fill:var(--ink)}
.wide td{white-space:nowrap}
)";
const std::string_view report_style_sha256 =
  "4+JbXTPA8OpYvZCg2QqAXah8joJ+VJIsx22crab9Rxs=";

namespace {

class html_writer {
public:
  html_writer(text_file& to, std::span<const process_trace> parts,
              const clock_merge& clocks)
    : to_(to), parts_(parts), first_(parts.front()), numbers_(parts),
      clocks_(clocks) {}

  void write();

private:
  void write_head();
  void write_facts();
  void write_ranks();
  void write_warnings();
  void write_warnings_of(const process_trace& part);
  void write_failed_step(const failed_step& s);
  void write_phases();
  void write_stacks();
  void write_steps();
  void write_timeline();
  void write_slow_runs();
  void write_slow_ranks();
  void write_types();
  void write_waits();
  void write_actors();
  void write_memory();

  void heading(std::string_view text) { to_ << "<h2>" << text << "</h2>\n"; }
  void fact(std::string_view name, const std::string& value) {
    to_ << "<tr><th>" << name << "</th><td>" << html_text(value)
        << "</td></tr>\n";
  }
  /// A header with names of columns; those of numbers begin with '#'.
  void begin_table(std::initializer_list<std::string_view> columns);
  void cell(const std::string& text) {
    to_ << "<td>" << html_text(text) << "</td>";
  }
  void number(const std::string& text) {
    to_ << "<td class=\"n\">" << html_text(text) << "</td>";
  }
  void end_table() { to_ << "</table></div>\n"; }
  /// How many rows a table leaves out.
  void write_rest(std::size_t all, std::size_t shown, std::string_view what) {
    if (all > shown)
      to_ << "<p class=\"dim\">" << all - shown << " more " << what
          << ".</p>\n";
  }

  bool is_job() const { return parts_.size() > 1; }
  /// "rank 1: " of a job's page.
  std::string rank_text(std::size_t part) const {
    return is_job() ? "rank " + std::to_string(parts_[part].run.process) + ": "
                    : std::string{};
  }

  text_file& to_;
  std::span<const process_trace> parts_;
  const process_trace& first_;
  report_numbers numbers_;
  const clock_merge& clocks_;
};

std::uint64_t whole(double ns) {
  return static_cast<std::uint64_t>(ns + 0.5);
}

std::string number_text(const char* format, double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string utc_time(std::int64_t unix_ns) {
  const auto seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm parts{};
  char text[32] = "";
  if (::gmtime_r(&seconds, &parts))
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

void html_writer::begin_table(std::initializer_list<std::string_view> columns) {
  to_ << "<div class=\"wide\"><table><tr>";
  for (auto name : columns)
    if (name.starts_with('#'))
      to_ << "<th class=\"n\">" << name.substr(1) << "</th>";
    else
      to_ << "<th>" << name << "</th>";
  to_ << "</tr>\n";
}

void html_writer::write_head() {
  const auto title = html_text(
    "Trace of " + (first_.run.command.empty() ? "a run" : first_.run.command));
  to_ << "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta "
         "charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" "
         "content=\"default-src 'none'; style-src 'sha256-"
      << report_style_sha256
      << "'; base-uri 'none'; form-action 'none'\">\n<meta name=\"viewport\" "
         "content=\"width=device-width, initial-scale=1\">\n<title>"
      << title << "</title>\n<style>" << report_style
      << "</style>\n</head>\n<body>\n<h1>" << title << "</h1>\n";
}

void html_writer::write_facts() {
  const auto& run = first_.run;
  to_ << "<div class=\"wide\"><table>\n";
  fact("Troupe", run.version);
  fact("begin", utc_time(run.begin_unix_ns));
  if (!is_job()) {
    fact("host", run.host + ", pid " + std::to_string(run.pid));
    fact("rank",
         std::to_string(run.process) + " of " + std::to_string(run.processes));
  }
  std::string devices;
  for (auto& d : first_.graph.devices)
    devices += (devices.empty() ? "" : ", ") + d;
  fact("devices", devices);
  fact("strategy", run.strategy);
  if (!is_job()) {
    fact("workers", std::to_string(run.workers));
    fact("events", std::to_string(first_.events.size()) + " of level "
                     + std::string{to_string(run.level)});
  }
  end_table();
  if (is_job())
    write_ranks();
}

void html_writer::write_ranks() {
  heading("Ranks");
  if (parts_.size() < first_.run.processes)
    to_ << "<p>" << first_.run.processes - parts_.size() << " of "
        << first_.run.processes << " are not in the page.</p>\n";
  begin_table({"#rank", "host", "#pid", "#workers", "#events", "level"});
  for (const auto& part : parts_) {
    to_ << "<tr>";
    number(std::to_string(part.run.process));
    cell(part.run.host);
    number(std::to_string(part.run.pid));
    number(std::to_string(part.run.workers));
    number(std::to_string(part.events.size()));
    cell(std::string{to_string(part.run.level)});
    to_ << "</tr>\n";
  }
  end_table();
}

void html_writer::write_warnings() {
  for (const auto& part : parts_)
    write_warnings_of(part);
  if (clocks_.contradiction_ns > 0)
    to_ << "<p><strong>The processes' clocks contradict each other by up to "
        << shown_time(static_cast<std::uint64_t>(clocks_.contradiction_ns))
        << ": times of different processes cannot be compared.</strong></p>\n";
  const auto& failures = numbers_.summary.failures;
  if (failures.count == 0)
    return;
  const std::string in = failures.op == no_handle
                           ? ""
                           : " in " + std::string{first_.name_of(failures.op)};
  const auto more =
    failures.count > 1
      ? ", the first of " + std::to_string(failures.count) + " failures"
      : "";
  to_ << "<p><strong>"
      << html_text("Step " + std::to_string(failures.step) + " failed" + in
                   + more + ".")
      << "</strong></p>\n";
  for (const auto& s : numbers_.summary.failed_steps)
    if (s.step == failures.step)
      write_failed_step(s);
}

/// What a failed step waited for.
void html_writer::write_failed_step(const failed_step& s) {
  std::string text = "It took " + shown_time(s.ns);
  if (s.longest != no_handle)
    text += ", " + shown_time(s.longest_ns) + " of it in "
            + std::string{first_.name_of(s.longest)};
  for (auto process : s.missing)
    text += (process == s.missing.front() ? ", without rank " : ", ")
            + std::to_string(process);
  to_ << "<p>" << html_text(text + ".") << "</p>\n";
}

void html_writer::write_warnings_of(const process_trace& part) {
  std::vector<std::string> warnings;
  if (part.lost > 0)
    warnings.push_back(std::to_string(part.lost)
                       + " events were overwritten before they were written.");
  if (part.unread_bytes > 0)
    warnings.push_back("The file is cut or damaged: its last "
                       + std::to_string(part.unread_bytes)
                       + " bytes cannot be read.");
  else if (!part.is_complete)
    warnings.emplace_back("The process ended without closing its trace.");
  const auto index = static_cast<std::size_t>(&part - parts_.data());
  for (auto& w : warnings)
    to_ << "<p><strong>" << html_text(rank_text(index) + w)
        << "</strong></p>\n";
}

void html_writer::write_phases() {
  if (std::ranges::all_of(parts_, &std::vector<phase>::empty,
                          &process_trace::phases))
    return;
  heading("Start-up");
  begin_table({"phase", "#time"});
  for (std::size_t i = 0; i < parts_.size(); ++i)
    for (auto& p : parts_[i].phases) {
      to_ << "<tr>";
      cell(rank_text(i) + p.name);
      number(shown_time(static_cast<std::uint64_t>(p.end_ns - p.begin_ns)));
      to_ << "</tr>\n";
    }
  end_table();
}

void html_writer::write_stacks() {
  if (std::ranges::all_of(parts_, &std::vector<worker_stack>::empty,
                          &process_trace::stacks))
    return;
  heading("Call stacks of busy workers");
  to_ << "<p>What ran when the file was written, the innermost call "
         "first.</p>\n";
  begin_table({"worker", "#step", "op", "#for", "calls"});
  for (std::size_t i = 0; i < parts_.size(); ++i)
    for (auto& s : parts_[i].stacks) {
      to_ << "<tr>";
      cell(rank_text(i) + std::to_string(s.worker)
           + (s.is_help ? ", helps" : ""));
      number(std::to_string(s.step));
      cell(std::string{first_.name_of(s.op)});
      number(shown_time(static_cast<std::uint64_t>(
        std::max<std::int64_t>(s.taken_ns - s.since_ns, 0))));
      to_ << "<td>" << html_text(s.missing);
      for (auto& f : s.frames)
        to_ << html_text(to_string(f)) << "<br>";
      to_ << "</td></tr>\n";
    }
  end_table();
}

void html_writer::write_steps() {
  heading("Steps");
  if (!numbers_.median_step) {
    to_ << "<p>No step was recorded from begin to end.</p>\n";
    return;
  }
  const auto steps = numbers_.all.steps();
  const auto& found = numbers_.summary.steps;
  const auto& longest = std::ranges::max(steps, {}, &step_times::ns);
  to_ << "<p>" << found.count << " steps, of which " << found.counted
      << " count: median " << shown_time(whole(found.median_ns))
      << ". The first took " << shown_time(steps.front().ns())
      << ", the longest " << shown_time(longest.ns()) << " (step "
      << longest.step
      << "). A step's time is what it adds to that of the steps before. With "
         "many steps, a bar is the longest of several.</p>\n<div "
         "class=\"wide\">"
      << steps_picture(numbers_) << "</div>\n";
}

void html_writer::write_timeline() {
  if (!numbers_.median_step || numbers_.in_median_step.empty())
    return;
  const auto& median = *numbers_.median_step;
  heading("The median step");
  to_ << "<p>Step " << median.step << ", step time " << shown_time(median.ns())
      << ", shown from its begin to its end. Ops of other steps are "
         "faint.</p>\n<div class=\"wide\">"
      << timeline_picture(numbers_, first_.graph) << "</div>\n";
}

void html_writer::write_slow_runs() {
  const auto& slow = numbers_.summary.slow_runs.worst;
  if (slow.empty())
    return;
  constexpr std::size_t shown = 12;
  heading("Slow runs");
  to_
    << "<p>At least twice the median of their op, and 1 ms more. Preempted: a "
       "worker had no core. Throttled: other machines of the host had the "
       "cores.</p>\n";
  begin_table({"#run", "#median", "op", "#step", "cause", "#without core"});
  for (std::size_t i = 0; i < std::min(shown, slow.size()); ++i) {
    const auto& r = slow[i];
    const bool is_known = r.cause != slow_cause::unknown;
    to_ << "<tr>";
    number(shown_time(r.ns));
    number(shown_time(whole(r.median_ns)));
    cell(std::string{first_.name_of(r.op)});
    number(std::to_string(r.step));
    cell(is_known ? std::string{to_string(r.cause)} : "");
    number(is_known
             ? shown_time(r.without_core_ns) + " of " + shown_time(r.around_ns)
             : "");
    to_ << "</tr>\n";
  }
  end_table();
  write_rest(numbers_.summary.slow_runs.count, shown, "slow runs");
}

void html_writer::write_slow_ranks() {
  const auto& slow = numbers_.summary.slow_ranks;
  if (slow.empty())
    return;
  constexpr std::size_t shown = 12;
  heading("Ranks that are slower than the others, per step");
  begin_table({"#rank", "op", "#time", "#on the others", "#times as long"});
  for (std::size_t i = 0; i < std::min(shown, slow.size()); ++i) {
    const auto& r = slow[i];
    to_ << "<tr>";
    number(std::to_string(parts_[r.process].run.process));
    cell(r.type);
    number(shown_time(whole(r.ns)));
    number(shown_time(whole(r.others_ns)));
    number(number_text("%.2f", r.ns / r.others_ns));
    to_ << "</tr>\n";
  }
  end_table();
  write_rest(slow.size(), shown, "types of slow ranks");
}

void html_writer::write_types() {
  const auto& types = numbers_.summary.types;
  if (types.empty())
    return;
  constexpr std::size_t shown = 15;
  heading("Ops by self time, per step");
  if (numbers_.summary.op_steps != numbers_.summary.steps.counted)
    to_ << "<p>Of " << numbers_.summary.op_steps
        << " steps all ops were recorded: numbers of ops are of these.</p>\n";
  begin_table({"op", "#time", "#share", "#runs"});
  for (std::size_t i = 0; i < std::min(shown, types.size()); ++i) {
    const auto& t = types[i];
    to_ << "<tr><td>" << color_key(numbers_, t.type) << html_text(t.type)
        << "</td>";
    number(shown_time(whole(t.self_ns)));
    number(number_text("%.1f %%", 100 * t.share));
    number(number_text("%.4g", t.count));
    to_ << "</tr>\n";
  }
  end_table();
  write_rest(types.size(), shown, "types");
}

void html_writer::write_waits() {
  if (numbers_.waits.empty())
    return;
  heading("Longest waits of workers");
  to_ << "<p>The worker ran nothing before the op. Ready: how long before its "
         "run the op had got its last message.</p>\n";
  begin_table({"#wait", "worker", "#step", "op", "waited for", "#ready"});
  for (auto& w : numbers_.waits) {
    to_ << "<tr>";
    number(shown_time(w.ns()));
    cell(rank_text(w.process) + to_string(w.track));
    number(std::to_string(w.step));
    cell(first_.graph.handles[w.op].name);
    if (w.ready == 0) {
      cell("not recorded");
      number("");
    } else {
      cell(std::string{first_.name_of(w.waited_for)});
      number(shown_time(w.end > w.ready ? w.end - w.ready : 0));
    }
    to_ << "</tr>\n";
  }
  end_table();
}

void html_writer::write_actors() {
  const auto& actors = numbers_.summary.actors;
  if (actors.empty())
    return;
  constexpr std::size_t shown = 20;
  heading("Actors of the application");
  begin_table({"actor", "#in handlers", "#share", "#messages",
               "#longest mailbox", "#longest handling", "end"});
  for (std::size_t i = 0; i < std::min(shown, actors.size()); ++i) {
    const auto& does = actors[i].activity;
    const auto& part = parts_[actors[i].process];
    const auto& actor = part.actors[actors[i].actor];
    to_ << "<tr>";
    cell(rank_text(actors[i].process) + part.name_of_actor(actors[i].actor));
    number(shown_time(does.busy_ns));
    number(number_text("%.1f %%", 100 * actors[i].busy));
    number(std::to_string(does.handled));
    number(std::to_string(does.most_waiting));
    number(shown_time(does.longest_ns));
    cell(actor.has_failed ? "failed: " + actor.reason : actor.reason);
    to_ << "</tr>\n";
  }
  end_table();
  write_rest(actors.size(), shown, "actors");
}

void html_writer::write_memory() {
  for (auto& peak : numbers_.summary.memory) {
    heading("Memory of temporaries, "
            + html_text(first_.graph.devices[peak.device]));
    to_ << "<p>Peak " << shown_bytes(peak.bytes) << ", in step " << peak.step
        << ".</p>\n<div class=\"wide\">"
        << memory_picture(numbers_.memory[peak.device], peak.bytes,
                          numbers_.end)
        << "</div>\n";
  }
}

void html_writer::write() {
  write_head();
  write_facts();
  write_warnings();
  write_phases();
  write_stacks();
  write_steps();
  write_timeline();
  write_slow_runs();
  write_slow_ranks();
  write_types();
  write_waits();
  write_actors();
  write_memory();
  to_ << "</body>\n</html>\n";
}

} // namespace

void write_html_report(std::span<const process_trace> parts,
                       const std::filesystem::path& file,
                       const clock_merge& clocks) {
  text_file to{file};
  html_writer{to, parts, clocks}.write();
  to.commit();
}

} // namespace troupe::trace

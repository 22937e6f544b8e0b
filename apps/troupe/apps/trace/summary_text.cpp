// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/trace/summary_text.hpp>

#include <troupe/apps/printed.hpp>
#include <troupe/apps/trace/stacks_text.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/base/quoted_name.hpp>

#include <algorithm>
#include <map>

namespace troupe::apps {

namespace {

/// Rows of each list in the text; JSON has all.
constexpr std::size_t rows_in_text = 10;

double ns_of(std::uint64_t ns) {
  return static_cast<double>(ns);
}

/// "N steps", with the right ending.
std::string count_text(std::uint64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

/// `rows` must outlive the result.
template <class Rows>
std::span<const typename Rows::value_type> first_of(const Rows& rows) {
  return {rows.data(), std::min(rows.size(), rows_in_text)};
}

std::string columns_text(const std::string& a, const std::string& b,
                         const std::string& rest) {
  const auto padded = [](const std::string& text, std::size_t width) {
    return std::string(width - std::min(width, text.size()), ' ') + text;
  };
  return padded(a, 12) + padded(b, 9) + "  " + rest + "\n";
}

std::string run_text(const traced_run& run, const trace::trace_summary& s) {
  const auto& first = run.parts().front();
  std::string text = one_line(first.run.command) + " with Troupe "
                     + one_line(first.run.version) + ", strategy "
                     + one_line(first.run.strategy) + ", level "
                     + std::string{to_string(s.level)} + "\n";
  for (std::size_t i = 0; i < run.parts().size(); ++i) {
    const auto& part = run.parts()[i];
    text += "process " + std::to_string(part.run.process) + " of "
            + std::to_string(part.run.processes) + ": pid "
            + std::to_string(part.run.pid) + " on " + one_line(part.run.host)
            + ", " + count_text(part.run.workers, "worker") + ", "
            + count_text(part.events.size(), "event");
    if (part.lost > 0)
      text += ", " + std::to_string(part.lost) + " lost";
    if (part.unread_bytes > 0)
      text += ", file cut or damaged";
    else if (!part.is_complete)
      text += ", ended without closing the file";
    const auto& clock = run.clocks().offsets[i];
    if (i > 0 && clock.uncertainty_ns >= 0)
      text += printed(", clock %+.1f us (+- %.1f us)",
                      static_cast<double>(clock.offset_ns) / ns_per_us,
                      static_cast<double>(clock.uncertainty_ns) / ns_per_us);
    else if (i > 0)
      text += ", clock as its host says";
    text += "\n";
  }
  if (run.clocks().contradiction_ns > 0)
    text += "clocks drift: "
            + time_text(static_cast<double>(run.clocks().contradiction_ns))
            + " cannot be explained\n";
  return text;
}

/// A phase of the rank in which it took longest; ranks meet in the first step.
struct slowest_phase {
  std::string name;
  std::size_t process = 0;
  std::int64_t ns = 0;
};

/// In the order of the first rank, then what only others have.
std::vector<slowest_phase> slowest_phases(const traced_run& run) {
  std::vector<slowest_phase> made;
  for (const auto& part : run.parts())
    for (const auto& p : part.phases) {
      const auto ns = p.end_ns - p.begin_ns;
      const auto known = std::ranges::find(made, p.name, &slowest_phase::name);
      if (known == made.end())
        made.push_back({p.name, part.run.process, ns});
      else if (ns > known->ns)
        *known = {p.name, part.run.process, ns};
    }
  return made;
}

std::string phases_text(const traced_run& run) {
  const auto phases = slowest_phases(run);
  if (phases.empty())
    return "";
  const bool is_job = run.parts().size() > 1;
  std::string text = "\nstart-up";
  text += is_job ? ", of the slowest process each\n" : "\n";
  for (const auto& p : phases)
    text += columns_text(
      time_text(static_cast<double>(p.ns)), "",
      one_line(p.name)
        + (is_job ? " (process " + std::to_string(p.process) + ")" : ""));
  return text;
}

std::string steps_text(const trace::step_statistics& s) {
  if (s.count == 0)
    return "\nno step has ended\n";
  return "\n" + count_text(s.count, "step") + ", of which "
         + std::to_string(s.counted) + " count: step time "
         + time_text(s.median_ns) + " (p10 " + time_text(s.p10_ns) + ", p90 "
         + time_text(s.p90_ns) + ", mean " + time_text(s.mean_ns)
         + "), no step under way in " + percent_text(s.between)
         + " of the time\n";
}

/// The first failure explains the others: a NaN spreads.
std::string failures_text(const traced_run& run,
                          const trace::failure_use& failures) {
  if (failures.count == 0)
    return "";
  auto text = "\nstep " + std::to_string(failures.step) + " failed";
  if (failures.op != no_handle)
    text += " in " + one_line(run.name_of(failures.op));
  if (failures.count > 1)
    text += ", the first of " + std::to_string(failures.count) + " failures";
  return text + "\n";
}

/// How many steps the numbers of ops are of, if those are not all that count.
std::string op_steps_text(const trace::trace_summary& s) {
  if (s.op_steps == 0)
    return "\nno step was recorded with all its ops: the level was raised or "
           "lowered meanwhile, or events were lost\n";
  return s.op_steps == s.steps.counted
           ? ""
           : "of " + count_text(s.op_steps, "step")
               + " all ops were recorded: numbers of ops are of "
               + (s.op_steps == 1 ? "this one\n" : "these\n");
}

std::string path_text(const traced_run& run, const trace::critical_path& path,
                      which_step which) {
  const auto total = std::max(1.0, ns_of(path.total()));
  std::string text = "\ncritical path of step " + std::to_string(path.step)
                     + (which == which_step::median    ? ", the median: "
                        : which == which_step::slowest ? ", the slowest: "
                                                       : ": ")
                     + time_text(total) + "\n";
  const auto kinds = path.by_kind();
  for (std::size_t k = 0; k < kinds.size(); ++k)
    text += columns_text(
      time_text(ns_of(kinds[k])), percent_text(ns_of(kinds[k]) / total),
      std::string{to_string(static_cast<trace::path_kind>(k))});
  text += "its ops, with the time that they were ready without a worker\n";
  const auto ops = ops_of(path);
  for (const auto& o : first_of(ops))
    text += columns_text(
      time_text(ns_of(o.ns)), percent_text(ns_of(o.ns) / total),
      one_line(run.name_of(o.op))
        + (o.waited_ns > 0 ? " (+ " + time_text(ns_of(o.waited_ns)) + ")"
                           : ""));
  return text;
}

/// ": preempted, the thread of worker 1 waited 33.9 ms for a core around it"
std::string cause_text(const traced_run& run, const trace::slow_run& r) {
  const auto time = time_text(ns_of(r.without_core_ns));
  switch (r.cause) {
  case trace::slow_cause::unknown: return "";
  case trace::slow_cause::preempted:
    return ": preempted, the thread of worker " + std::to_string(r.worker)
           + (run.parts().size() > 1
                ? " of rank "
                    + std::to_string(run.parts()[r.process].run.process)
                : "")
           + " waited " + time + " for a core around it";
  case trace::slow_cause::throttled:
    return ": throttled, other machines of the host took " + time
           + " of the cores' time around it";
  }
  return "";
}

std::string slow_runs_text(const traced_run& run,
                           const trace::trace_summary& s) {
  if (s.slow_runs.empty())
    return "";
  const auto count = s.slow_runs.size();
  const auto is_cut = count == trace::most_slow_runs;
  std::string text = "\nslow runs, at least twice their op's median and 1 ms "
                     "more: "
                     + std::to_string(count) + (is_cut ? " or more" : "")
                     + "\n";
  for (const auto& r : first_of(s.slow_runs))
    text +=
      columns_text(time_text(ns_of(r.ns)),
                   printed("%.1fx", ns_of(r.ns) / std::max(1.0, r.median_ns)),
                   one_line(run.name_of(r.op)) + " in step "
                     + std::to_string(r.step) + cause_text(run, r));
  return text;
}

std::string types_text(const traced_run& run, const trace::trace_summary& s) {
  if (s.types.empty())
    return "";
  std::string text = "\ntop ops by self time, per step";
  text += run.parts().size() > 1 ? ", of all ranks\n" : "\n";
  for (const auto& t : first_of(s.types))
    text += columns_text(time_text(t.self_ns), percent_text(t.share),
                         one_line(t.type) + printed(" (%.4g runs)", t.count));
  return text;
}

std::string waits_text(const traced_run& run, const trace::trace_summary& s) {
  if (s.waits.empty())
    return "";
  std::string text =
    "\nlongest waits, in " + count_text(s.op_steps, "step") + "\n";
  for (const auto& w : first_of(s.waits))
    text +=
      columns_text(time_text(ns_of(w.total_ns)), std::to_string(w.count) + "x",
                   one_line(run.name_of(w.op)) + " " + reason_text(run, w)
                     + "; at most " + time_text(ns_of(w.longest_ns))
                     + ", in step " + std::to_string(w.longest_in));
  return text;
}

std::string workers_text(const traced_run& run, const trace::trace_summary& s) {
  if (s.workers.empty() && s.overlap.empty())
    return "";
  std::string text = "\n";
  const bool several = run.parts().size() > 1;
  const auto process_of = [&](std::size_t p) {
    return several
             ? "process " + std::to_string(run.parts()[p].run.process) + ": "
             : std::string{};
  };
  for (const auto& w : s.workers)
    text += process_of(w.process) + "worker " + std::to_string(w.worker)
            + " idle " + percent_text(w.idle) + "\n";
  for (const auto& o : s.overlap)
    text += process_of(o.process)
            + (o.merge_ns > 0
                 ? "merging " + time_text(o.merge_ns) + " per step, "
                     + percent_text(o.share()) + " of it while ops compute\n"
                 : "nothing was merged by an op of its own\n");
  return text;
}

std::string messages_text(const trace::trace_summary& s) {
  const auto& m = s.messages;
  std::string text = "\nmessages in " + count_text(s.message_steps, "step")
                     + ": " + std::to_string(m.total());
  const auto add = [&](const char* what, std::uint64_t count) {
    if (count > 0)
      text += std::string{", "} + what + " " + std::to_string(count);
  };
  add("start to op", m.start_to_op);
  add("start to var", m.start_to_var);
  add("op to var", m.op_to_var);
  add("var to op", m.var_to_op);
  add("op to op", m.op_to_op);
  add("var to var", m.var_to_var);
  return text + "\n";
}

std::string actors_text(const traced_run& run, const trace::trace_summary& s) {
  if (s.actors.empty())
    return "";
  std::string text =
    "\nactors of the application: time in handlers, share of the trace\n";
  for (const auto& a : first_of(s.actors)) {
    const auto& part = run.parts()[a.process];
    const auto& does = a.activity;
    const auto& actor = part.actors[a.actor];
    auto what = one_line(part.name_of_actor(a.actor)) + ": "
                + count_text(does.handled, "message") + ", at most "
                + std::to_string(does.most_waiting) + " in its mailbox, up to "
                + time_text(ns_of(does.longest_ns)) + " for one";
    if (does.skipped > 0)
      what += ", skipped " + std::to_string(does.skipped) + "x";
    if (actor.has_failed)
      what += ", failed: " + one_line(actor.reason);
    text +=
      columns_text(time_text(ns_of(does.busy_ns)), percent_text(a.busy), what);
  }
  return text;
}

nlohmann::ordered_json actors_json(const traced_run& run,
                                   const trace::trace_summary& s) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& a : s.actors) {
    const auto& actor = run.parts()[a.process].actors[a.actor];
    all.push_back({{"process", a.process},
                   {"actor", a.actor},
                   {"name", actor.name},
                   {"id", actor.id},
                   {"received", a.activity.received},
                   {"handled", a.activity.handled},
                   {"skipped", a.activity.skipped},
                   {"busy_ns", a.activity.busy_ns},
                   {"busy", a.busy},
                   {"longest_ns", a.activity.longest_ns},
                   {"longest_mailbox", a.activity.most_waiting},
                   {"failed", actor.has_failed},
                   {"reason", actor.reason}});
  }
  return all;
}

std::string memory_text(const traced_run& run, const trace::trace_summary& s) {
  std::string text;
  for (const auto& m : s.memory) {
    text += "\nmemory of temporaries on "
            + one_line(run.graph().graph().devices[m.device]) + ": at most "
            + bytes_text(ns_of(m.bytes)) + ", in step " + std::to_string(m.step)
            + ", held by\n";
    for (const auto& h : first_of(m.holders))
      text += columns_text(bytes_text(ns_of(h.bytes)),
                           percent_text(ns_of(h.bytes) / ns_of(m.bytes)),
                           one_line(run.name_of(h.variable)));
  }
  return text;
}

nlohmann::ordered_json processes_json(const traced_run& run) {
  auto all = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < run.parts().size(); ++i) {
    const auto& part = run.parts()[i];
    auto phases = nlohmann::ordered_json::array();
    for (const auto& p : part.phases)
      phases.push_back({{"name", p.name}, {"ns", p.end_ns - p.begin_ns}});
    all.push_back(
      {{"process", part.run.process},
       {"pid", part.run.pid},
       {"host", part.run.host},
       {"workers", part.run.workers},
       {"events", part.events.size()},
       {"events_lost", part.lost},
       {"complete", part.is_complete},
       {"unread_bytes", part.unread_bytes},
       {"clock_offset_ns", run.clocks().offsets[i].offset_ns},
       {"clock_uncertainty_ns", run.clocks().offsets[i].uncertainty_ns},
       {"phases", phases},
       {"stacks", stacks_json(part)}});
  }
  return all;
}

nlohmann::ordered_json critical_path_json(const traced_run& run,
                                          const trace::critical_path& path) {
  nlohmann::ordered_json shares;
  const auto kinds = path.by_kind();
  shares["compute_ns"] = kinds[0];
  shares["merging_ns"] = kinds[1];
  shares["worker_wait_ns"] = kinds[2];
  shares["ending_ns"] = kinds[3];
  auto ops = nlohmann::ordered_json::array();
  for (const auto& o : ops_of(path))
    ops.push_back({{"op", run.name_of(o.op)},
                   {"ns", o.ns},
                   {"worker_wait_ns", o.waited_ns}});
  nlohmann::ordered_json made{{"step", path.step}, {"ns", path.total()}};
  made.update(shares);
  made["ops"] = ops;
  return made;
}

/// What a rank that was waited for sent: ", parcels of 4.0 KiB at 812.3 MB/s".
std::string parcels_text(const trace::op_wait& wait) {
  if (wait.parcels == 0)
    return "";
  const auto bytes = ns_of(wait.bytes);
  auto text =
    ", parcels of " + bytes_text(bytes / static_cast<double>(wait.parcels));
  constexpr double mb_per_s = 1e3; // a byte per ns
  if (wait.travel_ns > 0)
    text += printed(" at %.1f MB/s", bytes / ns_of(wait.travel_ns) * mb_per_s);
  return text;
}

} // namespace

std::vector<path_op> ops_of(const trace::critical_path& path) {
  std::map<handle_id, path_op> found;
  for (const auto& p : path.parts) {
    if (p.op == no_handle)
      continue;
    auto& o = found[p.op];
    o.op = p.op;
    (p.kind == trace::path_kind::worker ? o.waited_ns : o.ns) +=
      p.end - p.begin;
  }
  std::vector<path_op> ops;
  for (const auto& [id, o] : found)
    ops.push_back(o);
  std::ranges::stable_sort(ops, std::ranges::greater{},
                           [](const path_op& o) { return o.ns + o.waited_ns; });
  return ops;
}

std::string reason_text(const traced_run& run, const trace::op_wait& wait) {
  switch (wait.reason) {
  case trace::wait_reason::message:
    return "waits for " + one_line(run.name_of(wait.waited_for));
  case trace::wait_reason::begin: return "waits for the begin of the step";
  case trace::wait_reason::worker: return "is ready, but no worker runs it";
  case trace::wait_reason::rank:
    return "waits for rank "
           + std::to_string(run.graph().process_of(wait.waited_for)) + ": "
           + one_line(run.name_of(wait.waited_for)) + parcels_text(wait);
  }
  return "";
}

std::string summary_text(const traced_run& run, const trace::trace_summary& s,
                         which_step which) {
  auto text = run_text(run, s) + phases_text(run) + stacks_text(run.parts())
              + steps_text(s.steps) + failures_text(run, s.failures);
  if (s.level < trace_level::ops)
    return text + actors_text(run, s)
           + "critical path, ops, waits, workers and memory: record with "
             "--trace-level ops or messages\n";
  text += op_steps_text(s);
  if (s.path)
    text += path_text(run, *s.path, which);
  text += slow_runs_text(run, s) + types_text(run, s) + waits_text(run, s)
          + workers_text(run, s);
  text += s.level == trace_level::messages
            ? messages_text(s)
            : "\nmessages: record with --trace-level messages\n";
  return text + actors_text(run, s) + memory_text(run, s);
}

nlohmann::ordered_json summary_json(const traced_run& run,
                                    const trace::trace_summary& s) {
  using json = nlohmann::ordered_json;
  const auto& first = run.parts().front().run;
  json out{
    {"command", first.command},
    {"version", first.version},
    {"strategy", first.strategy},
    {"level", to_string(s.level)},
    {"processes", processes_json(run)},
    {"steps", s.steps.count},
    {"steps_counted", s.steps.counted},
    {"step_ns", s.steps.median_ns},
    {"step_ns_mean", s.steps.mean_ns},
    {"step_ns_p10", s.steps.p10_ns},
    {"step_ns_p90", s.steps.p90_ns},
    {"between_steps", s.steps.between},
    {"events_lost", s.lost},
    {"failures",
     {{"count", s.failures.count},
      {"op", s.failures.op == no_handle ? "" : run.name_of(s.failures.op)},
      {"step", s.failures.step}}},
    {"actors", actors_json(run, s)}};
  if (s.level < trace_level::ops)
    return out;
  out["op_steps"] = s.op_steps;
  out["critical_path"] = nullptr;
  if (s.path)
    out["critical_path"] = critical_path_json(run, *s.path);
  auto& slow = out["slow_runs"] = json::array();
  for (const auto& r : s.slow_runs)
    slow.push_back({{"op", run.name_of(r.op)},
                    {"step", r.step},
                    {"process", r.process},
                    {"worker", r.worker},
                    {"ns", r.ns},
                    {"median_ns", r.median_ns},
                    {"cause", to_string(r.cause)},
                    {"without_core_ns", r.without_core_ns}});
  auto& types = out["op_times"] = json::array();
  for (const auto& t : s.types)
    types.push_back({{"op_type", t.type},
                     {"count", t.count},
                     {"self_ns", t.self_ns},
                     {"share", t.share}});
  auto& waits = out["waits"] = json::array();
  for (const auto& w : s.waits)
    waits.push_back(
      {{"op", run.name_of(w.op)},
       {"waited_for",
        w.waited_for == no_handle ? "" : run.name_of(w.waited_for)},
       {"reason", to_string(w.reason)},
       {"count", w.count},
       {"total_ns", w.total_ns},
       {"longest_ns", w.longest_ns},
       {"longest_in_step", w.longest_in},
       {"parcels", w.parcels},
       {"bytes", w.bytes},
       {"travel_ns", w.travel_ns}});
  auto& idle = out["idle"] = json::array();
  for (const auto& w : s.workers)
    idle.push_back(
      {{"process", w.process}, {"worker", w.worker}, {"share", w.idle}});
  auto& overlap = out["overlap"] = json::array();
  for (const auto& o : s.overlap)
    overlap.push_back({{"process", o.process},
                       {"compute_ns", o.compute_ns},
                       {"merge_ns", o.merge_ns},
                       {"shared_ns", o.shared_ns},
                       {"share", o.share()}});
  if (s.level == trace_level::messages) {
    out["message_steps"] = s.message_steps;
    out["messages"] = {{"start_to_op", s.messages.start_to_op},
                       {"start_to_var", s.messages.start_to_var},
                       {"op_to_var", s.messages.op_to_var},
                       {"var_to_op", s.messages.var_to_op},
                       {"op_to_op", s.messages.op_to_op},
                       {"var_to_var", s.messages.var_to_var}};
  }
  auto& memory = out["memory"] = json::array();
  for (const auto& m : s.memory) {
    auto holders = json::array();
    for (const auto& h : m.holders)
      holders.push_back(
        {{"variable", run.name_of(h.variable)}, {"bytes", h.bytes}});
    memory.push_back({{"device", run.graph().graph().devices[m.device]},
                      {"peak_bytes", m.bytes},
                      {"step", m.step},
                      {"holders", holders}});
  }
  return out;
}

} // namespace troupe::apps

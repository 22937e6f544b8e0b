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
  if (first.run.version.empty()) // killed before it could say what it is
    return "nothing was recorded\n";
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
    else if (i > 0 && run.clocks().contradiction_ns > 0)
      text += ", clock unknown";
    else if (i > 0)
      text += ", clock as its host says";
    text += "\n";
  }
  if (const auto missing = missing_ranks_text(run.parts()); !missing.empty())
    text += missing + "\n";
  if (const auto clocks = clocks_text(run.clocks()); !clocks.empty())
    text += clocks + "\n";
  return text;
}

/// "rank 1's trace ends during step 60, after relu#11@cpu:1", where others go
/// on.
std::string ended_traces_text(const traced_run& run,
                              const trace::trace_summary& s) {
  std::string text;
  for (const auto& end : s.ended_traces) {
    text += "rank " + std::to_string(run.parts()[end.process].run.process)
            + "'s trace ends ";
    text += !end.step ? "before its first step"
                      : (end.is_within ? "during step " : "after step ")
                          + std::to_string(*end.step);
    if (end.op != no_handle)
      text += (end.has_op_ended ? ", after " : ", in ")
              + one_line(run.name_of(end.op));
    text += "\n";
  }
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
    return "\nno step has ended, or all have failed\n";
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

/// ", 7.00 s of it in all_reduce#3@cpu:0, which waited without rank 1"
std::string longest_text(const traced_run& run, const trace::failed_step& s) {
  if (s.longest == no_handle)
    return "";
  auto text = ", " + time_text(ns_of(s.longest_ns)) + " of it in "
              + one_line(run.name_of(s.longest));
  if (s.missing.empty())
    return text;
  text += s.missing.size() == 1 ? ", which waited for rank "
                                : ", which waited for ranks ";
  for (auto process : s.missing)
    text +=
      (process == s.missing.front() ? "" : ", ") + std::to_string(process);
  return text;
}

std::string failed_steps_text(const traced_run& run,
                              const trace::trace_summary& s) {
  const auto& failed = s.failed_steps;
  if (failed.empty())
    return "";
  auto text = "\n" + count_text(failed.size(), "step")
              + " failed or cancelled, none of which counts\n";
  for (const auto& f : first_of(failed))
    text += columns_text(
      time_text(ns_of(f.ns)), f.was_cancelled ? " cancelled" : "failed",
      "step " + std::to_string(f.step) + longest_text(run, f));
  return text;
}

/// How many steps the numbers of ops are of, if those are not all that count.
std::string op_steps_text(const trace::trace_summary& s) {
  if (s.steps.counted == 0)
    return ""; // none has ended
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

/// ": preempted, the thread of worker 1 waited 33.9 ms for a core in the
/// 210.0 ms around it"
std::string cause_text(const traced_run& run, const trace::slow_run& r) {
  const auto time = time_text(ns_of(r.without_core_ns));
  const auto around = time_text(ns_of(r.around_ns));
  switch (r.cause) {
  case trace::slow_cause::unknown: return "";
  case trace::slow_cause::preempted:
    return ": preempted, the thread of worker " + std::to_string(r.worker)
           + (run.parts().size() > 1
                ? " of rank "
                    + std::to_string(run.parts()[r.process].run.process)
                : "")
           + " waited " + time + " for a core in the " + around + " around it";
  case trace::slow_cause::throttled:
    return ": throttled, other machines of the host took " + time
           + " of the cores' time in the " + around + " around it";
  }
  return "";
}

std::string slow_runs_text(const traced_run& run, const trace::trace_summary& s,
                           which_step which) {
  const auto& slow = s.slow_runs;
  if (slow.count == 0)
    return "";
  std::string text =
    "\n" + count_text(slow.count, "slow run")
    + (which != which_step::median && s.path
         ? " in step " + std::to_string(s.path->step)
         : "")
    + ", at least twice the op's median and 1 ms more, which lost "
    + time_text(slow.excess_ns) + "; those that lost most:\n";
  for (const auto& r : first_of(slow.worst))
    text +=
      columns_text(time_text(r.excess_ns()),
                   printed("%.1fx", ns_of(r.ns) / std::max(1.0, r.median_ns)),
                   one_line(run.name_of(r.op)) + " in step "
                     + std::to_string(r.step) + cause_text(run, r));
  return text;
}

std::string slow_ranks_text(const traced_run& run,
                            const trace::trace_summary& s) {
  if (s.slow_ranks.empty())
    return "";
  std::string text = "\nranks that are slower than the others, per step\n";
  for (const auto& r : first_of(s.slow_ranks))
    text += columns_text(
      time_text(r.ns - r.others_ns), printed("%.2fx", r.ns / r.others_ns),
      "rank " + std::to_string(run.parts()[r.process].run.process) + ": "
        + one_line(r.type) + " takes " + time_text(r.ns) + ", on the others "
        + time_text(r.others_ns));
  return text;
}

std::string types_text(const traced_run& run, const trace::trace_summary& s) {
  if (s.types.empty())
    return "";
  std::string text = "\ntop ops by self time, per step";
  text += run.parts().size() > 1 ? ", of all ranks\n" : "\n";
  for (const auto& t : first_of(s.types))
    text += columns_text(
      time_text(t.self_ns), percent_text(t.share),
      one_line(t.type)
        + printed(t.count == 1 ? " (%.4g run)" : " (%.4g runs)", t.count));
  return text;
}

std::string waits_text(const traced_run& run, const trace::trace_summary& s) {
  if (s.waits.empty())
    return "";
  std::string text =
    "\nlongest waits, in " + count_text(s.op_steps, "step")
    + (run.graph().graph().devices.size() > 1
         ? ", of each device: those of several devices overlap\n"
         : "\n");
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
  for (const auto& each : s.streams)
    text += "stream " + each.stream + " of "
            + run.graph().graph().devices[each.device] + " idle "
            + percent_text(each.idle) + "\n";
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

/// "812.3 MB/s".
std::string rate_text(double bytes_per_ns) {
  constexpr double mb_per_s = 1e3, kb_per_s = 1e6; // of a byte per ns
  if (bytes_per_ns >= 1)
    return printed("%.1f GB/s", bytes_per_ns);
  if (bytes_per_ns * mb_per_s >= 1)
    return printed("%.1f MB/s", bytes_per_ns * mb_per_s);
  return printed("%.1f kB/s", bytes_per_ns * kb_per_s);
}

} // namespace

std::string parcels_text(const trace::op_wait& wait) {
  if (wait.parcels == 0)
    return "";
  const auto bytes = ns_of(wait.bytes);
  const auto count = static_cast<double>(wait.parcels);
  const auto text = ", parcels of " + bytes_text(bytes / count);
  if (wait.travel_ns == 0)
    return text;
  // A small parcel takes as long as an empty one.
  constexpr double least_with_rate = 4096;
  return bytes / count < least_with_rate
           ? text + " in " + time_text(ns_of(wait.travel_ns) / count)
           : text + " at " + rate_text(bytes / ns_of(wait.travel_ns));
}

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
  auto text = run_text(run, s) + ended_traces_text(run, s) + phases_text(run)
              + stacks_text(run.parts()) + steps_text(s.steps)
              + failures_text(run, s.failures) + failed_steps_text(run, s);
  if (run.parts().front().graph.handles.empty())
    return text; // the run was killed before any op could run
  if (s.level < trace_level::ops)
    return text + actors_text(run, s)
           + "critical path, ops, waits, workers and memory: record with "
             "--trace-level ops or messages, or a flight recorder with "
             "--flight-recorder ops\n";
  text += op_steps_text(s);
  if (s.path)
    text += path_text(run, *s.path, which);
  text += slow_runs_text(run, s, which);
  if (which != which_step::median && s.path)
    text += "\nwhat follows is of all steps that count, not of step "
            + std::to_string(s.path->step) + " alone\n";
  text += slow_ranks_text(run, s) + types_text(run, s) + waits_text(run, s)
          + workers_text(run, s);
  text += s.level == trace_level::messages
            ? messages_text(s)
            : "\nmessages: record with --trace-level messages\n";
  return text + actors_text(run, s) + memory_text(run, s);
}

} // namespace troupe::apps

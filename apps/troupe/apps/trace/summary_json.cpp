// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/trace/stacks_text.hpp>
#include <troupe/apps/trace/summary_text.hpp>

namespace troupe::apps {

namespace {

nlohmann::ordered_json failed_steps_json(const traced_run& run,
                                         const trace::trace_summary& s) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& f : s.failed_steps)
    all.push_back(
      {{"step", f.step},
       {"ns", f.ns},
       {"cancelled", f.was_cancelled},
       {"longest_op", f.longest == no_handle ? "" : run.name_of(f.longest)},
       {"longest_ns", f.longest_ns},
       {"missing_processes", f.missing}});
  return all;
}

nlohmann::ordered_json ended_traces_json(const traced_run& run,
                                         const trace::trace_summary& s) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& end : s.ended_traces) {
    auto& made = all.emplace_back(nlohmann::ordered_json{
      {"process", run.parts()[end.process].run.process},
      {"step", nullptr},
      {"within", end.is_within},
      {"op", end.op == no_handle ? "" : run.name_of(end.op)},
      {"op_ended", end.has_op_ended}});
    if (end.step)
      made["step"] = *end.step;
  }
  return all;
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

} // namespace

nlohmann::ordered_json summary_json(const traced_run& run,
                                    const trace::trace_summary& s) {
  using json = nlohmann::ordered_json;
  const auto& first = run.parts().front().run;
  json out{
    {"command", first.command},
    {"version", first.version},
    {"strategy", first.strategy},
    {"level", nullptr},
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
    {"failed_steps", failed_steps_json(run, s)},
    {"ended_traces", ended_traces_json(run, s)},
    {"clock_contradiction_ns", run.clocks().contradiction_ns},
    {"actors", actors_json(run, s)}};
  if (s.level > trace_level::off)
    out["level"] = to_string(s.level);
  if (s.level < trace_level::ops)
    return out;
  out["op_steps"] = s.op_steps;
  out["critical_path"] = nullptr;
  if (s.path)
    out["critical_path"] = critical_path_json(run, *s.path);
  auto& slow = out["slow_runs"] = json::array();
  for (const auto& r : s.slow_runs.worst)
    slow.push_back({{"op", run.name_of(r.op)},
                    {"step", r.step},
                    {"process", r.process},
                    {"worker", r.worker},
                    {"ns", r.ns},
                    {"median_ns", r.median_ns},
                    {"cause", to_string(r.cause)},
                    {"without_core_ns", r.without_core_ns},
                    {"around_ns", r.around_ns}});
  out["slow_run_count"] = s.slow_runs.count;
  out["slow_run_excess_ns"] = s.slow_runs.excess_ns;
  auto& ranks = out["slow_ranks"] = json::array();
  for (const auto& r : s.slow_ranks)
    ranks.push_back({{"process", run.parts()[r.process].run.process},
                     {"op_type", r.type},
                     {"ns", r.ns},
                     {"others_ns", r.others_ns}});
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
  auto& streams = out["idle_streams"] = json::array();
  for (const auto& each : s.streams)
    streams.push_back({{"device", run.graph().graph().devices[each.device]},
                       {"stream", each.stream},
                       {"share", each.idle}});
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

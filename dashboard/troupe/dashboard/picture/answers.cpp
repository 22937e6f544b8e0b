// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/picture/answers.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/dashboard/picture/graph_layout.hpp>
#include <troupe/dashboard/picture/handle_groups.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::dashboard {

using nlohmann::json;

namespace {

double ms_of(std::uint64_t ns) {
  return static_cast<double>(ns) / ns_per_ms;
}

/// JSON has no NaN.
json number_or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? json(*value) : json(nullptr);
}

/// One decimal place is enough for a picture.
double rounded(double value) {
  return std::round(value * 10) / 10;
}

json device_names(const live_picture& picture,
                  const std::vector<std::uint32_t>& devices) {
  auto names = json::array();
  for (auto d : devices)
    names.push_back(d < picture.graph().devices.size()
                      ? picture.graph().devices[d]
                      : std::to_string(d));
  return names;
}

/// The processes of devices; none if there is but one.
json ranks_of(const live_picture& picture,
              const std::vector<std::uint32_t>& devices) {
  const auto& processes = picture.graph().process_of_device;
  auto ranks = json::array();
  for (auto d : devices)
    if (d < processes.size())
      ranks.push_back(processes[d]);
  return ranks;
}

/// Of the variables that a collective merges; each once, whatever its devices.
json value_names(const live_picture& picture, const collective_call& call) {
  std::vector<std::string> names;
  for (const auto& value : call.values) {
    const auto& name = picture.graph().handles[value.variable].type;
    if (std::ranges::find(names, name) == names.end())
      names.push_back(name);
  }
  return names;
}

/// What is told of a collective's latest call.
struct shown_collective {
  std::uint32_t step = 0;
  std::vector<std::uint32_t> devices, arrived, missing;
  std::uint64_t waiting_ns = 0;
};

std::vector<std::uint32_t> all_devices(const trace::graph_info& graph) {
  std::vector<std::uint32_t> all(graph.devices.size());
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

/// Devices of other ranks that have not come to a call that is not over. A rank
/// makes its calls in one order: who is missing from a call that is under way
/// is missing from those behind it, too. Without one, nothing is known of them.
std::vector<std::uint32_t> missing_ranks(const trace::graph_info& graph,
                                         const collective_call& call,
                                         const known_collectives& known) {
  std::vector<std::uint32_t> missing;
  for (auto d : all_devices(graph))
    if (std::ranges::find(call.arrived, d) == call.arrived.end()
        && (known.under_way.empty()
            || std::ranges::any_of(known.under_way, [&](const auto& wait) {
                 return std::ranges::count(wait.call.missing, d) > 0;
               })))
      missing.push_back(d);
  return missing;
}

/// Events are those of one process. In a job, they do not tell when others
/// arrive, but when all have.
shown_collective by_events(const trace::graph_info& graph,
                           const collective_call& call, std::uint64_t now_ns,
                           const known_collectives& known) {
  const auto is_job = !graph.process_of_device.empty();
  if (call.is_over && is_job)
    return {call.step, all_devices(graph), all_devices(graph), {}, 0};
  shown_collective shown{call.step,
                         is_job ? all_devices(graph) : call.expected,
                         call.arrived,
                         {},
                         0};
  if (call.is_over)
    return shown;
  if (is_job)
    shown.missing = missing_ranks(graph, call, known);
  else
    for (auto d : call.expected)
      if (std::ranges::find(call.arrived, d) == call.arrived.end())
        shown.missing.push_back(d);
  if (!shown.missing.empty() && now_ns > call.first_ns)
    shown.waiting_ns = now_ns - call.first_ns;
  return shown;
}

/// Rank i is device i.
shown_collective by_ranks(const actors::collective_wait& wait,
                          std::uint64_t clock_ns) {
  shown_collective shown;
  shown.step = static_cast<std::uint32_t>(wait.step);
  shown.arrived.assign(wait.call.arrived.begin(), wait.call.arrived.end());
  shown.missing.assign(wait.call.missing.begin(), wait.call.missing.end());
  shown.devices = shown.arrived;
  shown.devices.insert(shown.devices.end(), shown.missing.begin(),
                       shown.missing.end());
  std::ranges::sort(shown.devices);
  if (!shown.missing.empty())
    shown.waiting_ns = clock_ns - std::min(clock_ns, wait.call.since_ns);
  return shown;
}

json group_answer(const handle_group& group, const box& place) {
  return {{"name", group.name()},          {"device", group.device},
          {"x", rounded(place.x)},         {"y", rounded(place.y)},
          {"width", rounded(place.width)}, {"height", rounded(place.height)},
          {"handles", group.handles}};
}

std::string_view name_of(actors::progress p) {
  using actors::progress;
  switch (p) {
  case progress::waits: return "waiting";
  case progress::is_ready: return "ready";
  case progress::runs: return "running";
  case progress::launched: return "launched";
  case progress::is_done: return "done";
  default: return "no step";
  }
}

/// What a worker runs, or is about to begin. `no_handle`: nothing.
handle_id op_on(std::size_t worker, const live_picture& picture,
                const board_state& state) {
  const auto found =
    std::ranges::find(state.delayed, worker, &delayed_op::worker);
  return found == state.delayed.end() ? picture.slices().running_on(worker)
                                      : found->handle;
}

/// Steps whose loss is not a number, ascending: the first one, which says where
/// it began, and the newest ones.
std::vector<std::uint32_t> nan_steps(const live_picture& picture) {
  constexpr std::size_t most = 64;
  std::vector<std::uint32_t> found;
  const auto first = picture.first_nan_step();
  if (!first)
    return found;
  for (auto s = picture.steps().rbegin();
       s != picture.steps().rend() && found.size() < most - 1; ++s)
    if (s->has_nan() && s->step != *first)
      found.push_back(s->step);
  found.push_back(*first);
  std::ranges::reverse(found);
  return found;
}

} // namespace

std::uint64_t messages_of_steps(const live_picture& picture) {
  return picture.messages_per_step() * picture.steps_ended();
}

std::string_view to_string(run_state state) noexcept {
  switch (state) {
  case run_state::running: return "running";
  case run_state::pausing: return "pausing";
  case run_state::paused: return "paused";
  case run_state::ended: return "ended";
  case run_state::failed: return "failed";
  default: return "idle";
  }
}

json run_answer(const trace::run_info& run,
                const std::vector<trace::run_info>& ranks,
                const board_state& state, recording file, bool may_control) {
  auto shown = json::array();
  for (const auto& rank : ranks)
    shown.push_back({{"rank", rank.process},
                     {"host", rank.host},
                     {"pid", rank.pid},
                     {"workers", rank.workers}});
  return {{"run", state.run},
          {"version", run.version},
          {"command", run.command},
          {"host", run.host},
          {"pid", run.pid},
          {"process", run.process},
          {"processes", run.processes},
          {"ranks", std::move(shown)},
          {"workers", run.workers},
          {"strategy", run.strategy},
          {"recorded", file != recording::none},
          {"cut", file == recording::cut},
          {"may_control", may_control}};
}

json graph_answer(const live_picture& picture, const board_state& state) {
  const auto& graph = picture.graph();
  const auto groups = group_handles(graph);
  const auto layout = lay_out(graph, groups);
  std::vector<std::size_t> group_of(graph.handles.size());
  auto layers = json::array();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    layers.push_back(group_answer(groups[g], layout.groups[g]));
    for (auto id : groups[g].handles)
      group_of[id] = g;
  }
  auto handles = json::array();
  for (handle_id id = 0; id < graph.handles.size(); ++id) {
    const auto& h = graph.handles[id];
    handles.push_back({{"name", h.name},
                       {"type", h.type},
                       {"op", h.is_op},
                       {"collective", h.is_collective},
                       {"device", h.device},
                       {"stream", h.stream},
                       {"shape", h.shape},
                       {"layer", groups[group_of[id]].name()},
                       {"needs", picture.needs(id)},
                       {"x", rounded(layout.places[id].x)},
                       {"y", rounded(layout.places[id].y)}});
  }
  auto edges = json::array();
  for (const auto& e : graph.edges)
    edges.push_back({e.from, e.to, e.distance});
  return {{"run", state.run},
          {"devices", graph.devices},
          {"width", rounded(layout.width)},
          {"height", rounded(layout.height)},
          {"handles", std::move(handles)},
          {"edges", std::move(edges)},
          {"layers", std::move(layers)}};
}

json series_answer(const live_picture& picture) {
  auto steps = json::array(), ms = json::array(), loss = json::array(),
       rate = json::array(), learning_rate = json::array();
  for (const auto& s : picture.steps()) {
    steps.push_back(s.step);
    ms.push_back(number_or_null(s.ms));
    loss.push_back(number_or_null(s.loss));
    rate.push_back(number_or_null(s.samples_per_s));
    learning_rate.push_back(number_or_null(s.learning_rate));
  }
  return {{"steps", std::move(steps)},
          {"ms", std::move(ms)},
          {"loss", std::move(loss)},
          {"samples_per_s", std::move(rate)},
          {"learning_rate", std::move(learning_rate)}};
}

json collectives_answer(const live_picture& picture, std::uint64_t now_ns,
                        const known_collectives& known) {
  std::map<handle_id, shown_collective> shown;
  for (const auto& [id, call] : picture.collectives().calls())
    if (!call.arrived.empty())
      shown[id] = by_events(picture.graph(), call, now_ns, known);
  for (const auto& wait : known.under_way)
    if (wait.handle < picture.graph().handles.size())
      shown[wait.handle] = by_ranks(wait, known.clock_ns);
  auto all = json::array();
  for (const auto& [id, one] : shown) {
    const auto& calls = picture.collectives().calls();
    const auto found = calls.find(id);
    const auto times = found == calls.end() ? collective_call{} : found->second;
    all.push_back(
      {{"handle", id},
       {"name", picture.graph().handles[id].name},
       {"values", value_names(picture, times)},
       {"step", one.step},
       {"devices", device_names(picture, one.devices)},
       {"arrived", device_names(picture, one.arrived)},
       {"missing", device_names(picture, one.missing)},
       {"arrived_ranks", ranks_of(picture, one.arrived)},
       {"missing_ranks", ranks_of(picture, one.missing)},
       {"waiting_ns", one.waiting_ns},
       {"last_ns", times.last_ns},
       {"mean_ns", times.calls > 0
                     ? times.total_ns / static_cast<double>(times.calls)
                     : 0.0},
       {"calls", times.calls}});
  }
  return all;
}

json memory_answer(const live_picture& picture, std::size_t most) {
  const auto& graph = picture.graph();
  auto all = json::array();
  for (std::uint32_t d = 0; d < graph.devices.size(); ++d) {
    if (!picture.has_device(d))
      continue;
    std::vector<std::pair<std::uint64_t, handle_id>> holders;
    for (handle_id id = 0; id < graph.handles.size(); ++id)
      if (graph.handles[id].device == d && picture.memory().held(id) > 0)
        holders.emplace_back(picture.memory().held(id), id);
    std::ranges::sort(holders, std::greater<>{});
    if (holders.size() > most)
      holders.resize(most);
    auto names = json::array();
    for (const auto& [bytes, id] : holders)
      names.push_back({{"name", graph.handles[id].name}, {"bytes", bytes}});
    all.push_back({{"device", graph.devices[d]},
                   {"bytes", picture.memory().bytes(d)},
                   {"peak_bytes", picture.peak_bytes(d)},
                   {"holders", std::move(names)}});
  }
  return all;
}

json timeline_answer(const live_picture& picture) {
  auto slices = json::array();
  for (const auto& s : picture.slices().slices())
    slices.push_back({ms_of(s.begin), ms_of(s.end - s.begin), s.op, s.worker,
                      s.step, static_cast<int>(s.kind)});
  return {
    {"slices", std::move(slices)},
    {"dropped", picture.slices().total() - picture.slices().slices().size()}};
}

json why_answer(const actors::wait_chain& chain) {
  std::string text; // what it comes down to
  if (!chain.missing.empty())
    text = "what " + chain.missing + " sends has not arrived";
  else if (!chain.links.empty())
    text = actors::to_string(chain.links.back());
  for (const auto& cause :
       {actors::ranks_text(chain), actors::workers_text(chain)})
    if (!cause.empty())
      text += (text.empty() ? "" : "; ") + cause;
  auto links = json::array();
  for (const auto& link : chain.links)
    links.push_back({{"handle", link.handle},
                     {"name", link.name},
                     {"step", link.step},
                     {"state", name_of(link.how_far)},
                     {"text", actors::to_string(link)}});
  return {{"links", std::move(links)},
          {"missing", chain.missing},
          {"missing_ranks",
           chain.call ? chain.call->missing : std::vector<std::size_t>{}},
          {"text", text}};
}

json paused_answer(const live_picture& picture, actors::wait_chain chain) {
  if (chain.links.empty())
    chain = next_step_in(picture);
  auto answer = why_answer(chain);
  const auto last = picture.newest_step();
  const auto next =
    last ? "step " + std::to_string(*last + 1) : std::string{"the first step"};
  const auto text = answer["text"].get<std::string>();
  answer["text"] = "the run is paused: " + next
                   + " begins when somebody resumes it or lets a step through"
                   + (text.empty() ? "" : "; " + text);
  return answer;
}

json head_answer(const live_picture& picture, const board_state& state) {
  auto workers = json::array();
  for (std::size_t w = 0; w < picture.workers(); ++w) {
    const auto op = op_on(w, picture, state);
    workers.push_back({{"busy", w < state.busy.size() ? state.busy[w] : 0.0},
                       {"op", op == no_handle ? json(-1) : json(op)}});
  }
  auto memory = json::array();
  for (std::size_t d = 0; d < picture.graph().devices.size(); ++d)
    if (picture.has_device(d))
      memory.push_back({{"device", picture.graph().devices[d]},
                        {"bytes", picture.memory().bytes(d)},
                        {"peak_bytes", picture.peak_bytes(d)}});
  const auto step = picture.newest_step();
  return {{"run", state.run},
          {"sequence", state.frame},
          {"time_ms", ms_of(state.now_ns)},
          {"state", to_string(state.state)},
          {"failure", state.failure},
          {"warning", state.warning},
          {"warning_ms", ms_of(state.warning_ns)},
          {"warnings", state.warnings},
          {"step", step ? json(*step) : json(-1)},
          {"steps_ended", picture.steps_ended()},
          {"level", to_string(state.level)},
          {"lost", state.lost},
          {"messages", messages_of_steps(picture)},
          {"messages_per_s", state.messages_per_s},
          {"steps_per_s", state.steps_per_s},
          {"workers", std::move(workers)},
          {"watchers", state.watchers},
          {"overhead", state.overhead},
          {"op_delay_ms", state.op_delay_ms},
          {"memory", std::move(memory)},
          {"nan_steps", nan_steps(picture)},
          {"nan_count", picture.nan_steps()}};
}

} // namespace troupe::dashboard

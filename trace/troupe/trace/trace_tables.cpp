// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/trace_tables.hpp>

#include <troupe/base/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::trace {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

template <class Read>
auto read_json(std::string_view text, const char* what, Read read) {
  try {
    return read(json::parse(text));
  } catch (const json::exception& e) {
    throw error(errc::bad_file,
                std::string{"malformed "} + what + " in a trace: " + e.what());
  }
}

/// Events number workers with 16 bits, of which one value means "none".
constexpr std::size_t most_workers = recorder::no_worker;

/// Of times in a file: 70 years, so that sums of them stay in range.
constexpr std::int64_t most_ns = std::int64_t{1} << 61;

/// Names that are no UTF-8 must not prevent a trace.
std::string dumped(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json json_of(const handle_info& h) {
  ordered_json made{{"name", h.name},
                    {"kind", h.is_op ? "op" : "var"},
                    {"type", h.type},
                    {"device", h.device}};
  if (h.is_op)
    made["stream"] = h.stream;
  if (h.is_collective)
    made["collective"] = true;
  if (!h.shape.empty())
    made["shape"] = h.shape;
  if (!h.results.empty())
    made["results"] = h.results;
  if (!h.attributes.empty())
    made["attributes"] = h.attributes;
  if (h.messages > 0)
    made["messages"] = h.messages;
  if (!h.scope.empty())
    made["scope"] = h.scope;
  return made;
}

handle_info handle_of(const json& value) {
  handle_info h;
  h.name = value.at("name");
  h.is_op = value.at("kind") == "op";
  h.type = value.at("type");
  h.device = value.at("device");
  h.stream = value.value("stream", "");
  h.is_collective = value.value("collective", false);
  h.shape = value.value("shape", "");
  h.results = value.value("results", "");
  h.attributes = value.value("attributes", "");
  h.messages = value.value("messages", 0u);
  h.scope = value.value("scope", "");
  return h;
}

void require_consistent(const graph_info& g) {
  const auto devices = g.devices.size();
  bool fits =
    g.process_of_device.empty() || g.process_of_device.size() == devices;
  for (auto& h : g.handles)
    fits = fits && h.device < devices;
  for (auto& e : g.edges)
    fits = fits && e.from < g.handles.size() && e.to < g.handles.size();
  if (!fits)
    throw error(errc::bad_file,
                "malformed graph in a trace: a number is out of range");
}

ordered_json json_of(const code_place& place) {
  ordered_json made;
  if (!place.symbol.empty()) {
    made["symbol"] = place.symbol;
    made["symbol_offset"] = place.symbol_offset;
  }
  if (!place.module.empty())
    made["module"] = place.module;
  made["module_offset"] = place.module_offset;
  return made;
}

code_place place_of(const json& value) {
  code_place place;
  place.symbol = value.value("symbol", "");
  place.symbol_offset = value.value("symbol_offset", place.symbol_offset);
  place.module = value.value("module", "");
  place.module_offset = value.at("module_offset");
  return place;
}

ordered_json json_of(const worker_stack& stack) {
  ordered_json made{{"worker", stack.worker},
                    {"thread", stack.thread},
                    {"op", stack.op},
                    {"step", stack.step},
                    {"since_ns", stack.since_ns},
                    {"taken_ns", stack.taken_ns}};
  if (stack.is_help)
    made["help"] = true;
  if (!stack.missing.empty())
    made["missing"] = stack.missing;
  auto& frames = made["frames"] = ordered_json::array();
  for (auto& f : stack.frames)
    frames.push_back(json_of(f));
  return made;
}

worker_stack stack_of(const json& value) {
  worker_stack stack;
  stack.worker = value.at("worker");
  stack.thread = value.at("thread");
  stack.op = value.at("op");
  stack.step = value.at("step");
  stack.since_ns = value.at("since_ns");
  stack.taken_ns = value.at("taken_ns");
  stack.is_help = value.value("help", false);
  stack.missing = value.value("missing", "");
  for (auto& f : value.at("frames"))
    stack.frames.push_back(place_of(f));
  return stack;
}

ordered_json json_of(actor_number number, const recorded_actor& a,
                     std::uint64_t begin_ns) {
  ordered_json made{{"number", number},
                    {"name", a.name},
                    {"id", a.id},
                    {"node", a.node},
                    {"recorded", a.is_recorded}};
  if (a.end_ns) {
    made["end_ns"] = *a.end_ns - static_cast<std::int64_t>(begin_ns);
    made["failed"] = a.has_failed;
    made["reason"] = a.reason;
  }
  return made;
}

recorded_actor actor_of(const json& value) {
  recorded_actor a;
  a.name = value.at("name");
  a.id = value.at("id");
  a.node = value.value("node", "");
  a.is_recorded = value.value("recorded", false);
  if (const auto end = value.find("end_ns"); end != value.end()) {
    a.end_ns = std::clamp(end->get<std::int64_t>(), -most_ns, most_ns);
    a.has_failed = value.value("failed", false);
    a.reason = value.value("reason", "");
  }
  return a;
}

/// The entry of number `at` in a list whose numbers come in their order.
template <class T>
T& entry_of(std::size_t at, std::vector<T>& all, std::size_t most) {
  if (at > all.size() || at >= most)
    throw error(
      errc::bad_file,
      "malformed list of actors in a trace: a number is out of range");
  return at == all.size() ? all.emplace_back() : all[at];
}

} // namespace

std::string to_json(const run_info& run) {
  ordered_json made{{"version", run.version},
                    {"command", run.command},
                    {"host", run.host},
                    {"pid", run.pid},
                    {"process", run.process},
                    {"processes", run.processes},
                    {"workers", run.workers},
                    {"strategy", run.strategy},
                    {"level", static_cast<int>(run.level)},
                    {"begin_unix_ns", run.begin_unix_ns}};
  if (!run.job.empty())
    made["job"] = run.job;
  return dumped(made);
}

run_info parse_run(std::string_view text) {
  return read_json(text, "description of a run", [](const json& value) {
    run_info run;
    run.version = value.value("version", "");
    run.command = value.value("command", "");
    run.host = value.value("host", "");
    run.pid = value.value("pid", run.pid);
    run.process = value.value("process", run.process);
    run.processes = value.value("processes", run.processes);
    run.workers = value.value("workers", run.workers);
    run.strategy = value.value("strategy", "");
    const auto level = value.value("level", std::int64_t{0});
    if (level < 0 || level > static_cast<int>(trace_level::messages)
        || run.workers > most_workers)
      throw error(errc::bad_file, "malformed description of a run in a trace: "
                                  "a number is out of range");
    run.level = static_cast<trace_level>(level);
    run.begin_unix_ns = value.value("begin_unix_ns", run.begin_unix_ns);
    run.job = value.value("job", "");
    return run;
  });
}

std::string to_json(const graph_info& graph) {
  ordered_json made{{"devices", graph.devices}};
  if (!graph.process_of_device.empty())
    made["process_of_device"] = graph.process_of_device;
  auto& handles = made["handles"] = ordered_json::array();
  for (auto& h : graph.handles)
    handles.push_back(json_of(h));
  auto& edges = made["edges"] = ordered_json::array();
  for (auto& e : graph.edges)
    edges.push_back({e.from, e.to, e.distance});
  return dumped(made);
}

graph_info parse_graph(std::string_view text) {
  return read_json(text, "graph", [](const json& value) {
    graph_info g;
    g.devices = value.at("devices").get<std::vector<std::string>>();
    if (const auto found = value.find("process_of_device");
        found != value.end())
      g.process_of_device = found->get<std::vector<std::size_t>>();
    for (auto& h : value.at("handles"))
      g.handles.push_back(handle_of(h));
    for (auto& e : value.at("edges"))
      g.edges.push_back({e.at(0), e.at(1), e.at(2)});
    require_consistent(g);
    return g;
  });
}

std::string to_json(std::span<const phase> phases) {
  auto made = ordered_json::array();
  for (auto& p : phases)
    made.push_back(
      {{"name", p.name}, {"begin_ns", p.begin_ns}, {"end_ns", p.end_ns}});
  return dumped(made);
}

std::vector<phase> parse_phases(std::string_view text) {
  return read_json(text, "phases", [](const json& value) {
    std::vector<phase> phases;
    for (auto& p : value)
      phases.push_back({p.at("name"), p.at("begin_ns"), p.at("end_ns")});
    return phases;
  });
}

std::string to_json(std::span<const worker_stack> stacks) {
  auto made = ordered_json::array();
  for (auto& s : stacks)
    made.push_back(json_of(s));
  return dumped(made);
}

std::vector<worker_stack> parse_stacks(std::string_view text,
                                       std::size_t handles) {
  return read_json(text, "call stacks", [handles](const json& value) {
    // What lies so far apart that the difference overflows is no time.
    constexpr std::int64_t most_ns = std::int64_t{1} << 61; // 70 years
    const auto is_time = [](std::int64_t ns) {
      return ns >= -most_ns && ns <= most_ns;
    };
    std::vector<worker_stack> stacks;
    for (auto& s : value) {
      const auto& made = stacks.emplace_back(stack_of(s));
      if (made.op >= handles || made.worker >= most_workers
          || !is_time(made.since_ns) || !is_time(made.taken_ns))
        throw error(errc::bad_file,
                    "malformed call stacks in a trace: a number "
                    "is out of range");
    }
    return stacks;
  });
}

std::string to_json(const actor_table::changes& found, std::uint64_t begin_ns) {
  auto actors = ordered_json::array(), types = ordered_json::array();
  for (const auto& [number, actor] : found.actors)
    actors.push_back(json_of(number, actor, begin_ns));
  for (const auto& [number, name] : found.types)
    types.push_back({{"number", number}, {"name", name}});
  return dumped({{"actors", actors}, {"types", types}});
}

void parse_actors(std::string_view text, std::vector<recorded_actor>& actors,
                  std::vector<std::string>& types) {
  read_json(text, "list of actors", [&](const json& value) {
    for (auto& a : value.at("actors"))
      entry_of(a.at("number").get<std::size_t>(), actors,
               actor_table::most_actors) = actor_of(a);
    for (auto& t : value.at("types"))
      entry_of(t.at("number").get<std::size_t>(), types,
               actor_table::most_types) = t.at("name").get<std::string>();
  });
}

} // namespace troupe::trace

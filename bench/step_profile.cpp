// SPDX-License-Identifier: Apache-2.0
// Where the time of a training step goes: per op type, per device and per
// worker, from the trace events of an executor.
#include <training.hpp>

#include <troupe/base/clock.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>

namespace {

using namespace troupe;
using namespace troupe::bench;

/// Keeps launches and completions, each thread in a list of its own.
class recorder final : public trace_sink {
public:
  static constexpr std::size_t threads = 64;

  void record(const trace_event& event) noexcept override {
    if (!on_.load(std::memory_order_relaxed))
      return;
    if (event.kind != trace_kind::launch
        && event.kind != trace_kind::completion)
      return;
    thread_local const auto here = next_.fetch_add(1) % threads;
    lists_[here].push_back(event);
  }

  void keep(bool yes) { on_.store(yes); }
  const std::vector<trace_event>& events_of(std::size_t thread) const {
    return lists_[thread];
  }

private:
  std::atomic<bool> on_{false};
  std::atomic<std::size_t> next_{0};
  std::vector<trace_event> lists_[threads];
};

/// Time that ops of one kind took.
struct row {
  std::size_t count = 0;
  double ms = 0;
};

struct profile {
  double wall_ms = 0;
  std::map<std::string, row> by_type;
  std::map<std::string, row> by_place; ///< "worker 0 cpu:1 compute"
  std::map<std::string, row> gaps;     ///< idle, by the op that ended it
  std::map<std::string, row> workers;  ///< busy
};

std::string place_of(const graph::ssa_graph& g, const graph::op_handle& o) {
  return to_string(g.devices[o.device]) + " "
         + std::string(graph::to_string(o.stream));
}

void add(row& r, std::uint64_t ns) {
  ++r.count;
  r.ms += static_cast<double>(ns) / 1e6;
}

void add_thread(profile& p, const graph::ssa_graph& g, const std::string& name,
                const std::vector<trace_event>& events) {
  std::uint64_t launched = 0, idle_since = 0;
  for (auto& e : events) {
    const auto& o = g.op(e.from);
    const auto what = place_of(g, o) + " " + o.desc->type;
    if (e.kind == trace_kind::launch) {
      if (idle_since > 0)
        add(p.gaps[name + " before " + what], e.time_ns - idle_since);
      launched = e.time_ns;
      continue;
    }
    if (launched == 0)
      continue;
    const auto taken = e.time_ns - launched;
    add(p.by_type[what], taken);
    add(p.by_place[name + " " + place_of(g, o)], taken);
    add(p.workers[name], taken);
    idle_since = e.time_ns;
  }
}

profile evaluate(const recorder& events, const graph::ssa_graph& g,
                 double wall_ms) {
  profile p;
  p.wall_ms = wall_ms;
  for (std::size_t t = 0, number = 0; t < recorder::threads; ++t)
    if (!events.events_of(t).empty())
      add_thread(p, g, "worker " + std::to_string(number++),
                 events.events_of(t));
  return p;
}

void print_table(const char* title, const std::map<std::string, row>& rows,
                 double steps, double wall_ms, std::size_t most) {
  std::vector<std::pair<std::string, row>> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end(),
            [](auto& a, auto& b) { return a.second.ms > b.second.ms; });
  sorted.resize(std::min(sorted.size(), most));
  std::printf("\n%-52s %9s %9s %7s\n", title, "per step", "ms/step", "share");
  for (auto& [name, r] : sorted)
    std::printf("%-52s %9.1f %9.4f %6.1f%%\n", name.c_str(),
                static_cast<double>(r.count) / steps, r.ms / steps,
                100 * r.ms / wall_ms);
}

nlohmann::ordered_json to_json(const std::map<std::string, row>& rows,
                               double steps) {
  auto list = nlohmann::ordered_json::object();
  for (auto& [name, r] : rows)
    list[name] = {{"count", static_cast<double>(r.count) / steps},
                  {"ms", r.ms / steps}};
  return list;
}

void print(const profile& p, std::size_t steps, bool json) {
  const auto n = static_cast<double>(steps);
  if (json) {
    const nlohmann::ordered_json all{{"ms", p.wall_ms / n},
                                     {"ops", to_json(p.by_type, n)},
                                     {"streams", to_json(p.by_place, n)},
                                     {"workers", to_json(p.workers, n)},
                                     {"gaps", to_json(p.gaps, n)}};
    std::printf("%s\n", all.dump().c_str());
    return;
  }
  std::printf("%.4f ms per step\n", p.wall_ms / n);
  print_table("op", p.by_type, n, p.wall_ms, 40);
  print_table("worker, stream", p.by_place, n, p.wall_ms, 40);
  print_table("worker, busy", p.workers, n, p.wall_ms, 40);
  print_table("idle", p.gaps, n, p.wall_ms, 16);
}

} // namespace

int main(int argc, char** argv) {
  std::string net = "lenet";
  std::int64_t batch = 0;
  training_options how{.devices = "cpu:2", .threads = 2};
  std::size_t steps = 200;
  bool json = false;
  CLI::App app{"Time per op type, stream and worker of a training step, and "
               "before which ops workers are idle.\n"
               "Example: step_profile --net lenet --devices cpu:2"};
  app.add_option("--net", net, "a built-in model");
  app.add_option("--batch", batch, "samples; default: the model's");
  app.add_option("--devices", how.devices, "as in troupe train");
  app.add_option("--threads", how.threads, "workers, 0: one per core");
  app.add_option("--in-flight", how.steps_in_flight, "steps that may overlap")
    ->check(CLI::PositiveNumber);
  app.add_option("--steps", steps)->check(CLI::PositiveNumber);
  app.add_flag("--json", json, "one JSON object");
  CLI11_PARSE(app, argc, argv);
  try {
    recorder events;
    how.trace = &events;
    const auto model = graph::build_model(net);
    training t{model, how};
    arena memory{make_host_memory_source()};
    const auto batches =
      random_batches(model, batch > 0 ? batch : model.batch, 4, memory);
    t.run(batches, 20);
    events.keep(true);
    const auto wall = t.run(batches, steps) * static_cast<double>(steps);
    events.keep(false);
    print(evaluate(events, t.graph(), wall), steps, json);
  } catch (const error& e) {
    std::fprintf(stderr, "step_profile: %s\n", e.what());
    return 1;
  }
}
